import Dispatch
import Glibc
import Postgres
import TestSupport
import Testing

@Suite struct EmbeddedServerTests {
    @Test func theFirstOpenMakesTheServerAndTheLastCloseStopsIt() throws {
        let folder = try EmbeddedFolder()
        #expect(try folder.status().dataFolder == nil)
        let server = try folder.open()
        try server.value("create table t as select 7 as a")
        #expect(try folder.status().isRunning)
        #expect(try folder.status().isInUse)
        server.close()
        server.close()
        #expect(try !folder.status().isRunning)
        #expect(!FileSystem.exists(server.socketFolder))

        let again = try folder.open()
        #expect(try again.value("select a from t") == 7)
        again.close()
    }

    @Test func itIsDurableSpeaksUTF8AndListensOnNoPort() throws {
        let folder = try EmbeddedFolder()
        let server = try folder.open()
        defer { server.close() }
        let rows = try Connection(server.conninfo).query(
            """
            select current_setting('fsync'), current_setting('full_page_writes'),
                current_setting('synchronous_commit'), current_setting('listen_addresses'),
                current_setting('server_encoding'), current_database()::text,
                (select datcollate from pg_database where datname = current_database())
            """
        )
        #expect(
            (0..<7).map { rows.text(0, $0) }
                == ["on", "on", "on", "", "UTF8", "subledger", "C.UTF-8"]
        )
        let socket = "\(server.socketFolder)/.s.PGSQL.5432"
        #expect(socket.utf8.count <= 107)
        #expect(try mode(of: server.socketFolder) == 0o700)
        #expect(try mode(of: server.dataFolder) == 0o700)
    }

    @Test(arguments: [
        "a folder with spaces and 'quotes'", "back\\slash \"and\" ünïcode, comma",
        String(repeating: "long-", count: 24) + "path",
        "deep/" + String(repeating: "d", count: 110) + "/" + String(repeating: "e", count: 110),
    ])
    func everyPathWillDo(_ name: String) throws {
        let folder = try EmbeddedFolder(name)
        #expect(folder.directory.utf8.count >= 40)
        let server = try folder.open()
        #expect(try server.value("select 1") == 1)
        #expect(FileSystem.parent(of: server.dataFolder) == FileSystem.resolved(folder.directory))
        server.close()
        #expect(try !folder.status().isRunning)
    }

    @Test(.enabled(if: geteuid() == 0, "only root hands the server to another account"))
    func underAFolderThatOnlyRootCanEnterThePointerSaysWhereTheDataAre() throws {
        let folder = try EmbeddedFolder("closed/clone", mode: 0o700)
        let server = try folder.open()
        try server.value("create table t as select 7 as a")
        let pointer = try #require(FileSystem.text("\(folder.directory)/cluster.path"))
        #expect(pointer.hasPrefix(server.dataFolder + "\n"))
        #expect(!server.dataFolder.hasPrefix(folder.directory))
        server.close()
        #expect(try !folder.status().isRunning)
        let again = try folder.open()
        #expect(again.dataFolder == server.dataFolder)
        #expect(try again.value("select a from t") == 7)
        again.close()
    }

    @Test(.enabled(if: geteuid() == 0, "only root hands the server to another account"))
    func theServerNeverRunsAsRoot() throws {
        let folder = try EmbeddedFolder()
        let server = try folder.open()
        defer { server.close() }
        let process = try #require(try folder.status().process)
        let status = try #require(FileSystem.text("/proc/\(process)/status"))
        let users = status.split(separator: "\n").first { $0.hasPrefix("Uid:") }
        #expect(users != nil)
        #expect(users?.split(separator: "\t").dropFirst().contains("0") == false)
    }

    @Test func manyCommandsAtOnceShareOneServer() throws {
        let folder = try EmbeddedFolder()
        let directory = folder.directory
        let results = Results()
        DispatchQueue.concurrentPerform(iterations: 6) { number in
            do {
                let server = try EmbeddedServer.open(directory: directory)
                defer { server.close() }
                results.add(try server.value("select \(number)"))
            } catch {
                results.add(nil)
                Issue.record("command \(number): \(error)")
            }
        }
        #expect(results.values.compactMap(\.self).sorted() == [0, 1, 2, 3, 4, 5])
        #expect(try !folder.status().isRunning)
    }

    @Test func oneCommandsEndDoesNotDisturbAnother() throws {
        let folder = try EmbeddedFolder()
        let first = try folder.open()
        let second = try folder.open()
        #expect(first.conninfo == second.conninfo)
        let session = try Connection(second.conninfo)
        first.close()
        #expect(isUsable(session))
        second.close()
        #expect(!isUsable(session))
    }

    @Test func aStartedServerGoesOnUntilItIsStopped() throws {
        let folder = try EmbeddedFolder()
        let server = try folder.open()
        try server.keepRunning()
        let busy = #expect(throws: EmbeddedServerError.self) {
            try EmbeddedServer.stop(directory: folder.directory)
        }
        #expect(busy?.code == .busy)
        // The refused stop has taken the wish back, so it is said again.
        try server.keepRunning()
        server.close()
        #expect(try folder.status().isRunning)
        #expect(try folder.status().isKept)
        #expect(try !folder.status().isInUse)
        try folder.open().close()
        #expect(try folder.status().isRunning)
        #expect(try EmbeddedServer.stop(directory: folder.directory))
        #expect(try !folder.status().isRunning)
        #expect(try !EmbeddedServer.stop(directory: folder.directory))
        // The wish was for that run alone.
        try folder.open().close()
        #expect(try !folder.status().isRunning)
    }

    @Test func whereThereIsNothingThereIsNothingToStop() throws {
        let folder = try EmbeddedFolder()
        #expect(try !EmbeddedServer.stop(directory: folder.directory))
        #expect(try !folder.status().isRunning)
        #expect(!FileSystem.exists(folder.directory))
    }

    private func mode(of path: String) throws -> UInt32 {
        try #require(FileSystem.mode(of: path))
    }
}

/// Values from several threads.
final class Results: Sendable {
    private let lock = Lock<[Int64?]>([])
    var values: [Int64?] { lock.withLock { $0 } }
    func add(_ value: Int64?) { lock.withLock { $0.append(value) } }
}
