import Foundation
import Glibc
import Postgres

/// A server that takes one session, answers its first statement, and the next one with an error that has
/// no SQLSTATE; PostgreSQL's own always have one, so whoever sees such an error has it from libpq.
final class ScriptedServer: Sendable {
    /// What a client connects with.
    let conninfo: String
    private let folder: URL
    private let listener: Int32

    init() throws {
        // The path of a socket must be short.
        folder = URL(fileURLWithPath: "/tmp/scripted-\(UInt32.random(in: 0...UInt32.max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        conninfo = "host=\(folder.path) port=5432 user=nobody dbname=nothing"
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array("\(folder.path)/.s.PGSQL.5432".utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let size = socklen_t(MemoryLayout<sockaddr_un>.size)
                return unsafe bind(listener, address, size) == 0 && listen(listener, 1) == 0
            }
        }
        guard isListening else {
            throw PostgresError(code: .unexpectedResult, message: "no socket to listen on")
        }
        Thread.detachNewThread { Self.serve(listener) }
    }

    deinit {
        close(listener)
        try? FileManager.default.removeItem(at: folder)
    }

    private static func serve(_ listener: Int32) {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        defer { close(client) }
        receive(client)
        // Authenticated, and ready for statements.
        send(client, message("R", [0, 0, 0, 0]) + message("Z", Array("I".utf8)))
        receive(client)
        let set = message("C", Array("SET\0".utf8))
        send(client, set + set + set + message("Z", Array("I".utf8)))
        receive(client)
        let error = message("E", Array("SERROR\0VERROR\0Msomething was lost\0\0".utf8))
        send(client, error + message("Z", Array("I".utf8)))
        // The client's farewell.
        receive(client)
    }

    private static func message(_ type: String, _ body: [UInt8]) -> [UInt8] {
        let length = UInt32(body.count + 4)
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }
        return Array(type.utf8) + bytes + body
    }

    private static func send(_ client: Int32, _ bytes: [UInt8]) {
        _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.send(client, $0.baseAddress, $0.count, 0) }
    }

    private static func receive(_ client: Int32) {
        var bytes = [UInt8](repeating: 0, count: 4096)
        _ = unsafe recv(client, &bytes, bytes.count, 0)
    }
}
