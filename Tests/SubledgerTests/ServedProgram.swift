import Foundation
import FoundationNetworking
import Glibc
import Postgres
import Synchronization
import TestSupport
import Testing

/// A running `subledger serve`, and the folder, database and token that belong to it.
final class ServedProgram {
    /// An answer of the service.
    struct Answer {
        var status: Int
        var body: Data
        var headers: [String: String]

        /// The body as an object of JSON.
        var object: [String: Any] {
            (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:]
        }

        /// The stable name of what was wrong.
        var reason: String? { object["reason"] as? String }
    }

    /// What a program writes, as it comes.
    private final class Text: Sendable {
        let all = Mutex("")
    }

    let folder: WorkingFolder
    let database: TestDatabase
    private let isDurable: Bool
    private let conninfo: String
    private(set) var process = Process()
    private(set) var port = 0
    private var errors = Pipe()
    private let written = Text()

    /// Simulated notifications, a migrated database, and the service running on them.
    init(on server: TestServer, subscriptions: Int) throws {
        folder = try WorkingFolder()
        database = try TestDatabase.create(on: server)
        isDurable = server === TestServer.durable
        conninfo = database.conninfo
        let words = ["simulate", "--subscriptions", "\(subscriptions)", "--seed", "11"]
        let simulated = try Subledger.run(
            words + ["--out", "n.ndjson", "--root", "r.pem"],
            in: folder.path
        )
        #expect(simulated.status == 0, "\(simulated.errors)")
        #expect(try run("migrate").status == 0)
        try start()
    }

    /// The service on what is there already, logged in as somebody.
    init(in folder: WorkingFolder, database: TestDatabase, conninfo: String) throws {
        self.folder = folder
        self.database = database
        self.conninfo = conninfo
        isDurable = false
        try start()
    }

    deinit { kill() }

    /// Starts the service and waits until it listens.
    func start() throws {
        errors = Pipe()
        var words = ["serve", "--listen", "127.0.0.1:0", "--root", "r.pem"]
        words += ["--accept-bundle", "com.example.subledger"]
        // The test server's usual login is its superuser.
        if conninfo == database.conninfo { words.append("--allow-owner") }
        if !isDurable { words.append("--allow-unsafe-server") }
        process = Subledger.process(words, in: folder.path, database: conninfo)
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        try process.run()
        var text = ""
        while !text.contains("\"listening\"") {
            let data = errors.fileHandleForReading.availableData
            guard !data.isEmpty else {
                throw CocoaError(.executableLoad, userInfo: [NSLocalizedDescriptionKey: text])
            }
            text += String(decoding: data, as: UTF8.self)
        }
        let line = text.split(separator: "\n").first { $0.contains("\"listening\"") } ?? ""
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        port = object?["port"] as? Int ?? 0
        // The rest must not fill the pipe.
        errors.fileHandleForReading.readabilityHandler = { [written] file in
            let more = String(decoding: file.availableData, as: UTF8.self)
            if more.isEmpty { file.readabilityHandler = nil }
            written.all.withLock { $0 += more }
        }
    }

    /// What it has written to its log since it listens.
    var log: String { written.all.withLock { $0 } }

    /// Has it read again what it reads on SIGHUP.
    func hangUp() { _ = Glibc.kill(process.processIdentifier, SIGHUP) }

    /// Ends it as a power cut would.
    func kill() {
        guard process.isRunning else { return }
        _ = Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Asks it to end and waits for that.
    func terminate() -> Int32 {
        process.terminate()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Runs another command on the same database.
    func run(_ words: String...) throws -> Subledger.Run {
        try Subledger.run(words, in: folder.path, database: database.conninfo)
    }

    /// Makes a token.
    func token(_ role: String) throws -> String {
        let run = try run("token", "create", "--role", role, "--name", "test", "--operator", "me")
        #expect(run.status == 0, "\(run.errors)")
        return run.output.split(separator: "\n").first.map(String.init) ?? ""
    }

    func get(_ path: String, token: String? = nil) -> Answer? {
        var request = URLRequest(url: url(path))
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        return Self.send(request)
    }

    func deliver(_ line: String) -> Answer? { Self.deliver(line, port: port) }

    /// Posts a line as Apple does.
    static func deliver(_ line: String, port: Int) -> Answer? {
        guard let url = URL(string: "http://127.0.0.1:\(port)/v1/notifications") else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data(line.utf8)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        return send(request)
    }

    func url(_ path: String) -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else {
            preconditionFailure("\(path) is no path")
        }
        return url
    }

    /// The answer, nil where there was none: nobody listens, or the connection was cut.
    static func send(_ request: URLRequest) -> Answer? {
        let answer = Mutex<Answer?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        let task = URLSession.shared.dataTask(with: request) { body, response, _ in
            if let response = response as? HTTPURLResponse {
                var headers: [String: String] = [:]
                for (name, value) in response.allHeaderFields { headers["\(name)"] = "\(value)" }
                let given = Answer(
                    status: response.statusCode,
                    body: body ?? Data(),
                    headers: headers
                )
                answer.withLock { $0 = given }
            }
            isDone.signal()
        }
        task.resume()
        isDone.wait()
        return answer.withLock { $0 }
    }

    /// The simulated notifications; answers of the Server API among the lines are not delivered.
    func notifications() throws -> [String] {
        try folder.lines("n.ndjson").filter { $0.hasPrefix("{\"signedPayload\"") }
    }

    /// Waits until the read models show all that is in the log.
    func waitUntilFolded() throws {
        var tries = 0
        while try number("select count(*) from ledger.mark") > 0, tries < 3000 {
            usleep(20_000)
            tries += 1
        }
        #expect(try number("select count(*) from ledger.mark") == 0, "all is folded")
    }

    func number(_ sql: String) throws -> Int64 {
        try database.connect().query(sql).int(0, 0) ?? -1
    }
}
