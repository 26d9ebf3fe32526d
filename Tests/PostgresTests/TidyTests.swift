import Postgres
import TestSupport
import Testing

/// What no compiler checks: which module may see which, and that files keep their form.
@Suite struct TidyTests {
    @Test func noFileIsLeftHalfDone() {
        // In two parts, so that this file does not find itself.
        let words = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
        for file in Repository.files(endingIn: [".swift", ".sql", ".md", ".h", ".yml", "Makefile"])
        {
            for (number, line) in file.lines.enumerated() {
                for word in words where line.contains(word) {
                    Issue.record("\(file.path):\(number + 1) says \(word)")
                }
            }
        }
    }

    @Test func noFileIsLongerThanOneCanOversee() {
        for file in Repository.files(endingIn: [".swift"]) where file.lines.count > 500 {
            Issue.record("\(file.path) has \(file.lines.count) lines: look for a second type in it")
        }
    }

    @Test func sqlAndProseFitTheScreen() {
        for file in Repository.files(endingIn: [".sql", ".md"]) {
            for (number, line) in file.lines.enumerated() where line.count > 120 {
                // A table's row and an address cannot be broken.
                if line.hasPrefix("|") || line.contains("://") { continue }
                Issue.record("\(file.path):\(number + 1) has \(line.count) characters")
            }
        }
    }

    @Test func everyLinkInProseLeadsSomewhere() {
        for file in Repository.files(endingIn: [".md"]) {
            let folder = FileSystem.parent(of: "/" + file.path)
            for part in file.lines.joined(separator: "\n").split(separator: "](").dropFirst() {
                let target = part.prefix { $0 != ")" && $0 != "#" }
                if target.isEmpty || target.contains("://") { continue }
                if !FileSystem.exists("\(Repository.root)\(folder)/\(target)") {
                    Issue.record("\(file.path) links to \(target)")
                }
            }
        }
    }

    @Test func noFileNamesAPlaceOfOneMachine() {
        let places = ["/" + "work/", "/" + "root/", "/" + "home/"]
        for file in Repository.files(endingIn: [".swift", ".sql", ".md", ".h", "Makefile", "run"]) {
            for (number, line) in file.lines.enumerated() {
                for place in places where line.contains(place) {
                    Issue.record("\(file.path):\(number + 1) names \(place)")
                }
            }
        }
    }

    /// Our modules that each module may import; a folder that is not here may import any.
    static let allowed: [String: Set<String>] = [
        "Sources/Ledger": [],
        "Sources/Crypto": ["COpenSSL"],
        "Sources/HTTP": ["CCurl", "CMicroHTTPD"],
        "Sources/Postgres": ["CPostgres"],
        "Sources/AppStore": ["Crypto", "Ledger"],
        "Sources/AppStoreSimulator": ["Crypto"],
        "Sources/SimulatorServer": ["AppStoreSimulator", "Crypto", "HTTP"],
        "schema": [],
        "Projections": ["Ledger", "Postgres"],
        "Sources/EventLog": ["AppStore", "Crypto", "Ledger", "Postgres", "Schema"],
        "Sources/LedgerService": [
            "AppStore", "Crypto", "EventLog", "HTTP", "Ledger", "Postgres", "Projections", "Schema",
        ],
    ]

    static let ours: Set<String> = [
        "AppStore", "AppStoreSimulator", "Benchmarks", "CCurl", "CMicroHTTPD", "COpenSSL",
        "CPostgres", "Crypto", "EventLog", "HTTP", "Ledger", "LedgerService", "Postgres",
        "Projections", "Schema", "SimulatorServer", "TestSupport", "subledger",
    ]

    @Test(arguments: allowed.keys.sorted())
    func aModuleImportsOnlyWhatItMay(_ folder: String) throws {
        let may = try #require(Self.allowed[folder])
        let files = Repository.files(endingIn: [".swift"]).filter {
            $0.path.hasPrefix(folder + "/")
        }
        #expect(!files.isEmpty)
        for file in files {
            for module in file.imports where Self.ours.contains(module) && !may.contains(module) {
                Issue.record("\(file.path) imports \(module)")
            }
        }
    }

    @Test func aCLibraryIsSeenByOneModuleAlone() {
        let owners = [
            "CCurl": "Sources/HTTP/", "CMicroHTTPD": "Sources/HTTP/",
            "COpenSSL": "Sources/Crypto/", "CPostgres": "Sources/Postgres/",
        ]
        for file in Repository.files(endingIn: [".swift"]) {
            for (library, owner) in owners
            where file.imports.contains(library) && !file.path.hasPrefix(owner) {
                Issue.record("\(file.path) imports \(library)")
            }
        }
    }

    /// Whoever folds needs neither a database nor a clock nor Foundation.
    @Test func theLedgerImportsNothingThatCouldTellTheTimeOrReachTheWorld() {
        let files = Repository.files(endingIn: [".swift"]).filter {
            $0.path.hasPrefix("Sources/Ledger/")
        }
        #expect(files.count > 20)
        for file in files {
            // The table of symbols is under a lock.
            let may: Set = file.path == "Sources/Ledger/Symbol.swift" ? ["Synchronization"] : []
            for module in file.imports where !may.contains(module) {
                Issue.record("\(file.path) imports \(module)")
            }
            // The concurrency library, which has clocks, is there without an import.
            let words = [
                "ContinuousClock", "SuspendingClock", "Task.", "async ", "readLine", "print(",
            ]
            for (number, line) in file.lines.enumerated() {
                for word in words where line.contains(word) {
                    Issue.record("\(file.path):\(number + 1) says \(word)")
                }
            }
        }
    }

    /// Dispatch's semaphores wait until an instant of the clock on the wall: set back by an hour,
    /// it makes a wait of moments one of an hour.
    @Test func noWaitDependsOnAClockThatCanBeSet() {
        for file in Repository.files(endingIn: [".swift"]) where file.path.hasPrefix("Sources/") {
            for (number, line) in file.lines.enumerated() {
                for word in [".wait(timeout:", "wallDeadline", "DispatchWallTime"]
                where line.contains(word) {
                    Issue.record("\(file.path):\(number + 1) says \(word)")
                }
            }
        }
    }

    /// Roots that vouch for Production without being Apple's are for measurements alone.
    @Test func noProgramTrustsAnyoneButAppleWithProduction() {
        for file in Repository.files(endingIn: [".swift"])
        where file.path.hasPrefix("Sources/") && !file.path.hasSuffix("/TrustAnchors.swift") {
            for (number, line) in file.lines.enumerated()
            where line.contains("addVouchingForAll") {
                Issue.record("\(file.path):\(number + 1) trusts a made-up root with Production")
            }
        }
    }

    @Test func thePureModulesNeedNoFoundation() {
        for file in Repository.files(endingIn: [".swift"]) {
            if file.imports.contains("Foundation"), !file.path.hasPrefix("Tests/") {
                Issue.record("\(file.path) imports all of Foundation")
            }
            if file.path.hasPrefix("Sources/Ledger/"), file.imports.contains("FoundationEssentials")
            {
                Issue.record("\(file.path) imports FoundationEssentials")
            }
        }
    }
}

/// The files of this package.
private enum Repository {
    struct File {
        let path: String
        let lines: [Substring]

        /// The modules that the file imports.
        var imports: [String] {
            lines.compactMap { line in
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index + 1 < words.count else {
                    return nil
                }
                let modifiers: Set<Substring> = [
                    "public", "package", "internal", "fileprivate", "private", "@testable",
                    "@preconcurrency",
                ]
                guard words[..<index].allSatisfy({ modifiers.contains($0) }) else { return nil }
                return String(words[index + 1].prefix { $0 != "." })
            }
        }
    }

    static let root: String = {
        // Tests/PostgresTests/TidyTests.swift
        var path = #filePath
        for _ in 0..<3 { path = FileSystem.parent(of: path) }
        return path
    }()

    private static let all: [File] = {
        var files: [File] = []
        func walk(_ folder: String) {
            for name in FileSystem.names(in: root + folder) {
                // Build products, and the private server of whoever tried something here.
                if name == ".build" || name == ".git" || name == ".subledger" { continue }
                let path = "\(folder)/\(name)"
                guard FileSystem.names(in: root + path).isEmpty else {
                    walk(path)
                    continue
                }
                guard let text = FileSystem.text(root + path, limitBytes: 1 << 20) else { continue }
                files.append(
                    File(
                        path: String(path.dropFirst()),
                        lines: text.split(separator: "\n", omittingEmptySubsequences: false)
                    )
                )
            }
        }
        walk("")
        return files
    }()

    static func files(endingIn endings: [String]) -> [File] {
        let files = all.filter { file in endings.contains { file.path.hasSuffix($0) } }
        precondition(!files.isEmpty, "no file ends in \(endings)")
        return files
    }
}
