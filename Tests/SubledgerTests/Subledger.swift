import Foundation
import Testing

/// The built program, run as its users run it.
enum Subledger {
    /// How a run ended and what it wrote.
    struct Run {
        var status: Int32
        var output: String
        var errors: String
        /// Whether a signal ended it.
        var wasKilled: Bool
        /// The most memory that was seen in use, in KiB.
        var memoryMaxKiB: Int
    }

    /// The program beside the test bundle.
    static let path: String = {
        let bundle = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return bundle.deletingLastPathComponent().appending(path: "subledger").path
    }()

    /// Runs a command to its end.
    @discardableResult
    static func run(
        _ words: String...,
        in folder: String,
        database: String? = nil,
        input: String? = nil
    ) throws -> Run {
        try run(words, in: folder, database: database, input: input)
    }

    /// Runs a command to its end.
    ///
    /// - Parameters:
    ///   - words: what follows the program's name.
    ///   - folder: the working folder.
    ///   - database: what `DATABASE_URL` says; nil leaves it unset.
    ///   - input: a file that becomes standard input.
    /// - Returns: how it ended.
    /// - Throws: when it cannot be started.
    @discardableResult
    static func run(
        _ words: [String],
        in folder: String,
        database: String? = nil,
        input: String? = nil
    ) throws -> Run {
        let process = process(words, in: folder, database: database)
        let files = ["out", "err"].map { "\(folder)/.\($0)-\(UUID().uuidString)" }
        for file in files { try Data().write(to: URL(filePath: file)) }
        defer { for file in files { try? FileManager.default.removeItem(atPath: file) } }
        process.standardOutput = FileHandle(forWritingAtPath: files[0])
        process.standardError = FileHandle(forWritingAtPath: files[1])
        process.standardInput = input.map { FileHandle(forReadingAtPath: $0) } ?? .nullDevice
        try process.run()
        var memoryMaxKiB = 0
        while process.isRunning {
            memoryMaxKiB = max(memoryMaxKiB, memory(of: process.processIdentifier))
            usleep(2000)
        }
        process.waitUntilExit()
        func text(_ file: String) throws -> String {
            String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self)
        }
        return Run(
            status: process.terminationStatus,
            output: try text(files[0]),
            errors: try text(files[1]),
            wasKilled: process.terminationReason == .uncaughtSignal,
            memoryMaxKiB: memoryMaxKiB
        )
    }

    /// The most memory that a running process ever used, in KiB; 0 when it is gone.
    private static func memory(of process: Int32) -> Int {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        for line in status.split(separator: "\n") where line.hasPrefix("VmHWM:") {
            return line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        }
        return 0
    }

    /// A command that is not started yet.
    static func process(_ words: [String], in folder: String, database: String?) -> Process {
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = words
        process.currentDirectoryURL = URL(filePath: folder)
        var environment = ProcessInfo.processInfo.environment
        environment["DATABASE_URL"] = database
        process.environment = environment
        return process
    }
}

/// A working folder that goes with the value.
final class WorkingFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/subledger-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file and returns its path.
    @discardableResult
    func file(_ name: String, _ text: String) throws -> String {
        try file(name, Data(text.utf8))
    }

    /// Writes a file and returns its path.
    @discardableResult
    func file(_ name: String, _ data: Data) throws -> String {
        try data.write(to: URL(filePath: "\(path)/\(name)"))
        return "\(path)/\(name)"
    }

    /// The lines of a file.
    func lines(_ name: String) throws -> [String] {
        let data = try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map { String($0) }
    }

    /// What is in it.
    var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: path))?.sorted() ?? []
    }
}
