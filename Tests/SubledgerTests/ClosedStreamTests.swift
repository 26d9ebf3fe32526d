import Foundation
import Testing

/// What the program does where its streams and files are not what they should be.
@Suite struct ClosedStreamTests {
    /// Runs a line of the shell in which `$0` is the program.
    private static func shell(
        _ line: String,
        in folder: WorkingFolder
    ) throws -> (status: Int32, errors: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        // One that hangs is killed, which no exit code of the program's own is.
        process.arguments = ["-c", "timeout -s KILL 100 \(line)", Subledger.path]
        process.currentDirectoryURL = URL(filePath: folder.path)
        let errors = Pipe()
        process.standardError = errors
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let text = String(
            decoding: errors.fileHandleForReading.readDataToEndOfFile(),
            as: UTF8.self
        )
        process.waitUntilExit()
        return (process.terminationStatus, text)
    }

    /// The number is not given to a pipe of the program's own, which would never end.
    @Test func aClosedStandardInputIsSaid() throws {
        let folder = try WorkingFolder()
        let run = try Self.shell("\"$0\" verify - <&-", in: folder)
        #expect(run.status == 2)
        #expect(run.errors.contains("cannot read on in standard input"), "\(run.errors)")
    }

    @Test func aClosedStandardOutputIsSaid() throws {
        let folder = try WorkingFolder()
        let run = try Self.shell("\"$0\" --version >&- 2>&1", in: folder)
        #expect(run.status != 0 && run.status != 137, "\(run.status) \(run.errors)")
        let both = try Self.shell("\"$0\" verify - <&- >&- 2>&-", in: folder)
        #expect(both.status == 2)
    }

    /// It would be replaced by what is said of it, or be empty where nothing is.
    @Test func theRefusedLinesAreNotWrittenOverThoseThatAreRead() throws {
        let folder = try WorkingFolder()
        let text = "no notification\n"
        try folder.file("lines", text)
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/same",
            withDestinationPath: "lines"
        )
        for command in [["ingest", "lines"], ["receipt", "import", "lines"]] {
            for name in ["lines", "./lines", "same"] {
                let run = try Subledger.run(
                    command + ["--accept-bundle", "com.example", "--rejects", name],
                    in: folder.path
                )
                #expect(
                    run.status == 2 && run.errors.contains("the file that is read"),
                    "\(run.errors)"
                )
            }
        }
        #expect(try folder.lines("lines") == ["no notification"])
    }
}
