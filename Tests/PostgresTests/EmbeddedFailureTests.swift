import Dispatch
import Glibc
import Postgres
import TestSupport
import Testing

/// What the private server survives, and what it says when it cannot.
@Suite struct EmbeddedFailureTests {
    @Test func aKilledCommandLeavesTheServerToTheNextOne() async throws {
        let folder = try EmbeddedFolder()
        let directory = folder.directory
        await #expect(processExitsWith: .signal(SIGKILL)) { [directory = directory as String] in
            let server = try EmbeddedServer.open(directory: directory)
            try server.value("create table t as select 7 as a")
            kill(getpid(), SIGKILL)
        }
        #expect(try folder.status().isRunning)
        #expect(try !folder.status().isInUse)
        let process = try folder.status().process
        let server = try folder.open()
        #expect(try folder.status().process == process)
        #expect(try server.value("select a from t") == 7)
        server.close()
        #expect(try !folder.status().isRunning)
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aCommandToldToEndStopsTheServerAndEndsByThatSignal(_ number: Int32) async throws {
        let folder = try EmbeddedFolder()
        let directory = folder.directory
        await #expect(processExitsWith: .signal(number)) {
            [directory = directory as String, number = number as Int32] in
            Termination.install()
            let server = try EmbeddedServer.open(directory: directory)
            try server.value("create table t as select 7 as a")
            kill(getpid(), number)
            // Busy with a query, as a command would be.
            _ = try? server.value("select pg_sleep(60)")
            exit(3)
        }
        #expect(try !folder.status().isRunning)
        #expect(try folder.open().value("select a from t") == 7)
    }

    @Test func aCommandToldToEndWhileItStartsTheServerLeavesNoneBehind() async throws {
        let folder = try EmbeddedFolder()
        try folder.open().close()
        let directory = folder.directory
        await #expect(processExitsWith: .signal(SIGTERM)) { [directory = directory as String] in
            Termination.install()
            _ = try EmbeddedServer.open(directory: directory) { step in
                guard step.contains("starting") else { return }
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(30)) {
                    kill(getpid(), SIGTERM)
                }
            }
            while true { pause() }
        }
        // The server ends by itself in its own time, and whoever comes now waits for that.
        let server = try folder.open()
        #expect(try server.value("select 1") == 1)
        server.close()
        #expect(try !folder.status().isRunning)
    }

    @Test func aCommandThatStopsByItselfInTimeEndsInItsOwnWay() async throws {
        let folder = try EmbeddedFolder()
        let directory = folder.directory
        await #expect(processExitsWith: .exitCode(7)) { [directory = directory as String] in
            Termination.install { _ in sleep(30) }
            let server = try EmbeddedServer.open(directory: directory)
            kill(getpid(), SIGINT)
            try server.value("select pg_sleep(0.2)")
            exit(7)
        }
        #expect(try !folder.status().isRunning)
    }

    @Test func aCommandThatCallsExitStopsTheServer() async throws {
        let folder = try EmbeddedFolder()
        let directory = folder.directory
        await #expect(processExitsWith: .exitCode(3)) { [directory = directory as String] in
            let server = try EmbeddedServer.open(directory: directory)
            try server.value("select 1")
            exit(3)
        }
        #expect(try folder.status().dataFolder != nil)
        #expect(try !folder.status().isRunning)
    }

    @Test func aKilledServerIsStartedAgainAndHasWhatWasCommitted() throws {
        let folder = try EmbeddedFolder()
        let server = try folder.open()
        try server.value("create table t as select 7 as a")
        let process = try #require(try folder.status().process)
        // Only the server itself: its children still hold its memory when the next one starts.
        kill(process, SIGKILL)
        let again = try folder.open()
        #expect(try again.value("select a from t") == 7)
        #expect(try folder.status().process != process)
        again.close()
        server.close()
        #expect(try !folder.status().isRunning)
    }

    @Test func aStaleProcessNumberOfAStrangerDoesNotHinderTheStart() throws {
        let folder = try EmbeddedFolder()
        try folder.open().close()
        let data = try #require(try folder.status().dataFolder)
        // A stranger of the server's own account, for which PostgreSQL alone would not start.
        let account = try ServerAccount.forCluster(ownedBy: FileSystem.owner(of: data))
        let stranger = try ChildProcess.spawn(account.command(["/bin/sleep", "60"]))
        defer {
            kill(stranger, SIGKILL)
            _ = ChildProcess.wait(for: stranger)
        }
        for process in [stranger, 4_000_000] {
            try FileSystem.write(
                "\(process)\n\(data)\n1\n5432\n/tmp\n\n 1 1\nready\n",
                to: "\(data)/postmaster.pid"
            )
            try account.own("\(data)/postmaster.pid")
            #expect(try !folder.status().isRunning)
            let server = try folder.open()
            #expect(try server.value("select 1") == 1)
            server.close()
        }
        #expect(ChildProcess.isRunning(stranger))
    }

    /// A killed server leaves its socket's lock too, and its number may be a stranger's by now.
    @Test func aStaleLockOfTheSocketDoesNotHinderTheStart() throws {
        let server = TestServer.forCrashes()
        let account = server.cluster.account
        let stranger = try ChildProcess.spawn(account.command(["/bin/sleep", "60"]))
        defer {
            kill(stranger, SIGKILL)
            _ = ChildProcess.wait(for: stranger)
        }
        server.cluster.killAll()
        let lock = "\(server.socketFolder)/.s.PGSQL.5432.lock"
        #expect(FileSystem.exists(lock), "the killed server left it")
        try FileSystem.write("\(stranger)\n", to: lock)
        try account.own(lock)
        try server.crashAndRestart()
        #expect(try server.connect().query("select 1").int(0, 0) == 1)
        #expect(ChildProcess.isRunning(stranger))
    }

    @Test func aHalfMadeClusterIsMadeAnew() throws {
        let folder = try EmbeddedFolder()
        try FileSystem.makeFolder("\(folder.directory)/cluster.draft/base/1")
        try FileSystem.write("15", to: "\(folder.directory)/cluster.draft/PG_VERSION")
        let server = try folder.open()
        #expect(try server.value("select 1") == 1)
        server.close()
        #expect(!FileSystem.exists("\(folder.directory)/cluster.draft"))
    }

    @Test func withoutServerProgramsTheErrorSaysWhatToInstall() {
        let error = #expect(throws: EmbeddedServerError.self) {
            try ServerBinaries.find(path: "/nonexistent:", debianFolder: "/nonexistent")
        }
        #expect(error?.code == .noBinaries)
        #expect(error?.message.contains("apt-get install postgresql") == true)
        #expect(error?.message.contains("DATABASE_URL") == true)
    }

    @Test func aClusterOfAnotherVersionNamesThePackageItNeeds() throws {
        let error = #expect(throws: EmbeddedServerError.self) {
            try ServerBinaries.find(version: 9)
        }
        #expect(error?.code == .version)
        #expect(error?.message.contains("apt-get install postgresql-9") == true)
        #expect(try ServerBinaries.find().majorVersion >= 15)
    }

    @Test func aServerThatDoesNotStartSaysWhy() throws {
        let folder = try EmbeddedFolder()
        try folder.open().close()
        let data = try #require(try folder.status().dataFolder)
        try FileSystem.write("no_such_setting = 1\n", to: "\(data)/postgresql.auto.conf")
        let error = #expect(throws: EmbeddedServerError.self) { try folder.open() }
        #expect(error?.code == .start)
        #expect(error?.message.contains("no_such_setting") == true)
        #expect(try !folder.status().isInUse)
    }

    @Test func aFileInThePlaceOfTheFolderIsNamed() throws {
        let folder = try EmbeddedFolder()
        try FileSystem.write("", to: folder.directory)
        let error = #expect(throws: EmbeddedServerError.self) { try folder.open() }
        #expect(error?.code == .directory)
        #expect(error?.message.contains(folder.directory) == true)
    }

    @Test(.enabled(if: SmallDisk.isPossible, "only root can mount a small file system"))
    func aFullDiskIsNamedAndNothingHalfMadeStays() throws {
        let folder = try EmbeddedFolder()
        let disk = try SmallDisk(FileSystem.parent(of: folder.directory), megabytes: 12)
        let error = #expect(throws: EmbeddedServerError.self) { try folder.open() }
        #expect(error?.code == .diskFull)
        #expect(error?.message.contains("disk is full") == true)
        #expect(FileSystem.names(in: folder.directory).filter { $0.hasPrefix("cluster") } == [])
        withExtendedLifetime(disk) {}
    }
}

/// A small file system in memory, mounted on a folder.
final class SmallDisk {
    private let folder: String

    static let isPossible: Bool = {
        guard geteuid() == 0, let folder = try? TestFolder.make() else { return false }
        defer { FileSystem.removeTree(folder) }
        return (try? SmallDisk(folder, megabytes: 1)) != nil
    }()

    init(_ folder: String, megabytes: Int) throws {
        self.folder = folder
        let result = unsafe mount("tmpfs", folder, "tmpfs", 0, "size=\(megabytes)m,mode=755")
        guard result == 0 else { throw Refusal() }
    }

    deinit { _ = unsafe umount2(folder, Int32(MNT_DETACH)) }
}
