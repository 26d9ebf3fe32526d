import Foundation
import Testing

/// What the program says where nothing but the command line and files are needed.
@Suite struct UsageTests {
    private let folder: WorkingFolder

    init() throws { folder = try WorkingFolder() }

    @Test func itsVersionAndItsCommandsAreShown() throws {
        let version = try Subledger.run("--version", in: folder.path)
        #expect(version.status == 0)
        #expect(version.output.hasPrefix("subledger 0."))
        let help = try Subledger.run("--help", in: folder.path)
        #expect(help.status == 0)
        for name in ["verify", "ingest", "rebuild", "entitlements", "explain", "config check"] {
            #expect(help.output.contains("  \(name) "))
        }
        #expect(help.errors.isEmpty)
    }

    @Test func everyCommandShowsItsUsageWithoutADatabase() throws {
        for words in [["ingest"], ["db", "psql"], ["audit", "head"], ["rebuild"], ["demo"]] {
            let run = try Subledger.run(words + ["--help"], in: folder.path)
            #expect(run.status == 0)
            #expect(run.output.hasPrefix("Usage: subledger \(words.joined(separator: " "))"))
        }
        #expect(folder.names == [])
    }

    @Test(arguments: [
        (["frobnicate"], "unknown command frobnicate"),
        (["rebiuld"], "did you mean rebuild?"),
        (["verify", "--rot", "x"], "did you mean --root?"),
        (["ingest"], "FILE is missing"),
        (["entitlements", "--at", "yesterday"], "--at takes 2026-01-31"),
        (["entitlements", "--owner", "me"], "--owner takes a UUID"),
        (["simulate"], "--out FILE is missing"),
        (["db", "start", "now"], "unexpected “now”"),
        (["verify", "--app-apple-id", "5"], "goes with --bundle-id"),
        (["ingest", "--app-apple-id", "5", "x"], "belongs to the --accept-bundle before it"),
    ])
    func aCommandLineThatIsNotUnderstoodIsExplained(words: [String], message: String) throws {
        let run = try Subledger.run(words, in: folder.path)
        #expect(run.status == 2)
        #expect(run.errors.contains(message), "\(run.errors)")
        #expect(run.errors.contains("Usage: subledger"))
        #expect(run.output.isEmpty)
        #expect(folder.names == [], "nothing was made")
    }

    @Test func anUnusableFileIsNamedBeforeAnythingIsStarted() throws {
        let gzip = try folder.file("a.gz", Data([0x1F, 0x8B, 8, 0, 0, 0]))
        let before = folder.names
        for (path, message) in [
            ("missing.ndjson", "cannot read missing.ndjson: No such file"),
            (".", ". is a directory"),
            (gzip, "it looks like gzip data"),
        ] {
            for command in ["verify", "ingest"] {
                let run =
                    command == "verify"
                    ? try Subledger.run("verify", path, in: folder.path)
                    : try Subledger.run(
                        "ingest",
                        "--accept-bundle",
                        "com.example",
                        path,
                        in: folder.path
                    )
                #expect(run.status == 2)
                #expect(run.errors.contains(message), "\(run.errors)")
            }
        }
        #expect(folder.names == before)
    }

    @Test func ingestWithoutAnAppSaysHowToNameOne() throws {
        let path = try folder.file("lines", "{}\n")
        let run = try Subledger.run("ingest", path, in: folder.path)
        #expect(run.status == 2)
        #expect(run.errors.contains("--accept-bundle ID"))
        #expect(folder.names == ["lines"])
    }

    @Test func aWrongConfigurationStopsEveryCommandThatReadsIt() throws {
        try folder.file("subledger.json", "{\"apps\": [{\"bundle_id\": \"com.example.app\"}]}")
        for words in [["config", "check"], ["ingest", "x"], ["entitlements"], ["rebuild"]] {
            let run = try Subledger.run(words, in: folder.path)
            #expect(run.status == 2)
            #expect(run.errors.contains("apps[0].app_apple_id: missing"), "\(words)")
        }
        #expect(folder.names == ["subledger.json"])
    }

    @Test func aConfigurationIsCheckedWithItsCertificateFiles() throws {
        try folder.file(
            "subledger.json",
            """
            {"apps": [{"bundle_id": "com.example.app", "environments": ["Sandbox"],
              "anchors": ["root.pem"]}]}
            """
        )
        let missing = try Subledger.run("config", "check", in: folder.path)
        #expect(missing.status == 2)
        #expect(missing.errors.contains("root.pem"))
        for content in ["", "<html>not found</html>", "-----BEGIN CERTIFICATE-----\nx\n"] {
            try folder.file("root.pem", content)
            let run = try Subledger.run("config", "check", in: folder.path)
            #expect(run.status == 2)
            #expect(run.errors.contains("root.pem"))
        }
    }

    @Test func aDatabaseThatIsNotThereIsSaidSo() throws {
        for words in [["entitlements"], ["migrate"], ["audit", "head"]] {
            let run = try Subledger.run(
                words,
                in: folder.path,
                database: "postgresql://nobody:hunter2@127.0.0.1:1/x?connect_timeout=2"
            )
            #expect(run.status == 3)
            #expect(run.errors.contains("Connection refused"))
            #expect(!run.errors.contains("hunter2"), "a password is never shown")
        }
        #expect(folder.names == [])
    }

    @Test func verifyAnswersEachLineAndMemoryStaysFlatOnAHugeOne() throws {
        // 300 MB without a line feed, as a sparse file of spaces would be: written in pieces.
        let path = try folder.file("huge", "a.b.c\n")
        let handle = try #require(FileHandle(forWritingAtPath: path))
        handle.seekToEndOfFile()
        let piece = Data(repeating: UInt8(ascii: "x"), count: 1 << 20)
        for _ in 0..<300 { handle.write(piece) }
        handle.write(Data("\nnot json\n".utf8))
        try handle.close()
        let run = try Subledger.run("verify", path, in: folder.path)
        #expect(run.status == 1)
        let lines = run.output.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[0].contains("\"line\":1,"))
        #expect(lines[1].contains("\"reason\":\"too_large\""))
        #expect(lines[1].contains("314572800 bytes"))
        #expect(lines[2].contains("\"line\":3,"))
        #expect(run.memoryMaxKiB > 1000, "it was measured")
        #expect(run.memoryMaxKiB < 200_000, "\(run.memoryMaxKiB) KiB")
    }

    @Test func aReaderThatGoesAwayIsNoError() throws {
        let path = try folder.file("many", String(repeating: "a.b\n", count: 50_000))
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.arguments = ["-c", "\"$0\" verify \"$1\" 2>\"$2\" | head -1", Subledger.path, path]
        shell.arguments?.append("\(folder.path)/errors")
        let pipe = Pipe()
        shell.standardOutput = pipe
        try shell.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        shell.waitUntilExit()
        #expect(String(decoding: output, as: UTF8.self).contains("malformed_jws"))
        #expect(!(try folder.lines("errors").joined().contains("ipe")))
    }
}
