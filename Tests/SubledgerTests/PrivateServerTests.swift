import Foundation
import TestSupport
import Testing

/// The server that the program runs for itself where none is named.
@Suite struct PrivateServerTests {
    /// What the environment says to libpq is about other servers: it must lead the ledger nowhere else,
    /// nor keep it from its own server.
    @Test func theEnvironmentOfOtherServersIsForgotten() throws {
        let folder = try WorkingFolder()
        func run(_ words: [String], _ variables: [String: String]) throws -> (Int32, String) {
            let process = Subledger.process(words, in: folder.path, database: nil)
            process.environment?.merge(variables) { $1 }
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            process.standardInput = FileHandle.nullDevice
            try process.run()
            let bytes = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return (process.terminationStatus, String(decoding: bytes, as: UTF8.self))
        }
        // Nobody listens at that address and port, and there is no such service.
        let elsewhere = [
            "PGHOSTADDR": "127.0.0.1", "PGPORT": "1", "PGSERVICE": "nowhere", "PGUSER": "nobody",
            "PGSSLMODE": "garbage", "PGCONNECT_TIMEOUT": "abc", "PGDATABASE": "nothing",
        ]
        let (status, head) = try run(["audit", "head"], elsewhere)
        #expect(status == 0)
        #expect(!head.isEmpty)
        let (again, same) = try run(["audit", "head"], [:])
        #expect(again == 0 && same == head, "it is the same ledger")
    }
}
