import Foundation
import LedgerService
import Testing

/// What can be checked of the container files where no engine is at hand to run them.
@Suite struct DeployTests {
    /// The folder of the package, found from this file's own place.
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private func lines(_ path: String) throws -> [String] {
        try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    private func words(_ line: String) -> [String] {
        line.split(separator: " ").map(String.init)
    }

    /// Each service of the compose file with its lines.
    private func services() throws -> [String: [String]] {
        var result: [String: [String]] = [:]
        var section = ""
        var service = ""
        for line in try lines("docker-compose.yml") where !line.hasPrefix("#") {
            let indent = line.prefix { $0 == " " }.count
            #expect(!line.contains("\t"), "YAML knows no tabs")
            #expect(indent.isMultiple(of: 2), "\(line)")
            let text = line.dropFirst(indent)
            if indent == 0, text.hasSuffix(":") { section = String(text.dropLast()) }
            guard section == "services" else { continue }
            if indent == 2, text.hasSuffix(":"), !text.hasPrefix("#") {
                service = String(text.dropLast())
                #expect(result[service] == nil, "\(service) is there twice")
                result[service] = []
            } else if indent >= 4 {
                result[service]?.append(line)
            }
        }
        return result
    }

    @Test func everyServiceHasWhatItNeeds() throws {
        let services = try services()
        #expect(Set(services.keys) == ["postgres", "migrate", "subledger", "caddy"])
        for (name, lines) in services {
            let keys = lines.filter { $0.hasPrefix("    ") && !$0.hasPrefix("     ") }
                .compactMap { $0.split(separator: ":").first.map { $0.dropFirst(4) } }
                .filter { !$0.hasPrefix("#") }
            #expect(Set(keys).count == keys.count, "\(name) says something twice")
            for key in ["image", "restart", "healthcheck"] {
                #expect(keys.contains(Substring(key)), "\(name) lacks \(key)")
            }
            let image = lines.first { $0.hasPrefix("    image: ") } ?? ""
            expectPinned(image)
        }
        let postgres = services["postgres"] ?? []
        for setting in ["fsync=on", "full_page_writes=on", "synchronous_commit=on"] {
            #expect(postgres.contains { $0.hasSuffix("- \(setting)") })
        }
    }

    private func expectPinned(_ line: String, location: SourceLocation = #_sourceLocation) {
        let image = words(line).first { $0.contains(":") && !$0.hasSuffix(":") } ?? ""
        let tag = image.split(separator: ":").last ?? ""
        // At least a minor version: 16.9, 2.10.0, 12.11-slim.
        let numbers = tag.split(separator: "-").first?.split(separator: ".") ?? []
        #expect(
            numbers.count >= 2 && numbers.allSatisfy { Int($0) != nil },
            "\(line) is not pinned",
            sourceLocation: location
        )
    }

    @Test func everyVariableOfTheComposeFileIsKnown() throws {
        let text = try lines("docker-compose.yml").joined(separator: "\n")
        let example = try lines("deploy/example.env").joined(separator: "\n")
        for part in text.split(separator: "${").dropFirst() {
            let name = part.prefix { $0.isLetter || $0 == "_" }
            let hasDefault = part.dropFirst(name.count).hasPrefix(":-")
            #expect(hasDefault || example.contains("\(name)="), "\(name) is not in example.env")
        }
        for lines in [try services()["subledger"] ?? [], try lines("Dockerfile")] {
            for line in lines where line.contains("SUBLEDGER_") && !line.hasPrefix("#") {
                let name = line.drop { $0 != "S" }.prefix { $0.isLetter || $0 == "_" }
                let isKnown = ServiceSettings.variables.contains(String(name))
                #expect(isKnown || line.contains("PASSWORD") || line.hasSuffix("end."), "\(line)")
            }
        }
        // Nobody's secret is in the files.
        for line in example.split(separator: "\n") where line.contains("PASSWORD") {
            #expect(line.hasSuffix("="))
        }
    }

    @Test func theImageIsSmallPinnedAndNotRoot() throws {
        let lines = try lines("Dockerfile")
        let text = lines.joined(separator: "\n")
        for line in lines where line.hasPrefix("FROM ") { expectPinned(line) }
        #expect(lines.filter { $0.hasPrefix("FROM ") }.count == 2)
        // The builder is the toolchain that this was tested with.
        let manifest = try self.lines("Package.swift")[0]
        let tools = words(manifest).last ?? ""
        #expect(text.contains("FROM swift:\(tools)."))
        #expect(!lines.contains { $0.hasPrefix("ADD ") || $0.contains("latest") })
        #expect(text.contains("--static-swift-stdlib"))
        #expect(text.contains("HEALTHCHECK"))
        let user = lines.last { $0.hasPrefix("USER ") } ?? ""
        #expect(Int(words(user).last?.split(separator: ":").first ?? "0").map { $0 > 0 } == true)
        for part in text.split(separator: "RUN ") where part.contains("apt-get install") {
            #expect(part.contains("--no-install-recommends"))
            #expect(part.contains("rm -rf /var/lib/apt/lists/*"))
        }
        // What is copied exists and gets past .dockerignore.
        let admitted = try self.lines(".dockerignore").filter { $0.hasPrefix("!") }.map {
            $0.dropFirst()
        }
        for line in lines where line.hasPrefix("COPY ") && !line.contains("--from") {
            let source = words(line)[1]
            #expect(admitted.contains(Substring(source)), "\(source)")
            #expect(FileManager.default.fileExists(atPath: Self.root.appending(path: source).path))
        }
    }

    /// The roles are made before there is a program to ask for them.
    @Test func theDatabasesScriptMakesTheRolesThatTheProgramPrints() throws {
        let folder = try WorkingFolder()
        let printed = try Subledger.run("migrate", "--print-roles", in: folder.path)
        let script = try lines("deploy/make-login.sh")
        let statements = printed.output.split(separator: "\n").map {
            $0.replacing("\"", with: "").replacing(";", with: "")
        }
        #expect(statements.count == 5)
        for statement in statements { #expect(script.contains("\(statement);"), "\(statement)") }
        let login = try Subledger.run("migrate", "--print-login", "service", in: folder.path)
        let last = login.output.split(separator: "\n").last ?? "nothing"
        let grant = String(last.replacing("\"", with: ""))
        #expect(script.contains(grant), "\(login.output)")
    }

    @Test func theProxysFileIsBalancedAndSendsOnToTheService() throws {
        let lines = try lines("deploy/Caddyfile")
        var depth = 0
        for line in lines where !line.drop(while: { $0 == "\t" }).hasPrefix("#") {
            let indent = line.prefix { $0 == "\t" }.count
            if line.hasSuffix("}"), !line.contains("{") { depth -= 1 }
            #expect(line.isEmpty || indent == depth, "\(line)")
            if line.hasSuffix("{") { depth += 1 }
        }
        #expect(depth == 0)
        #expect(lines.contains { $0.contains("reverse_proxy subledger:8080") })
    }
}
