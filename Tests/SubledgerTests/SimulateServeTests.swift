import AppStore
import AppStoreSimulator
import Crypto
import Foundation
import HTTP
import Testing

/// `subledger simulate serve`, from its folder's description to its end.
@Suite struct SimulateServeTests {
    /// A running program.
    final class Program {
        let process: Process
        let errors = Pipe()

        init(_ words: [String], in folder: WorkingFolder) throws {
            process = Subledger.process(
                ["simulate", "serve", "--listen", "127.0.0.1:0", "--out", "store"] + words,
                in: folder.path,
                database: nil
            )
            process.standardOutput = FileHandle.nullDevice
            process.standardError = errors
            try process.run()
            var text = ""
            while !text.contains("Ctrl-C") {
                let data = errors.fileHandleForReading.availableData
                if data.isEmpty { throw CocoaError(.executableLoad) }
                text += String(decoding: data, as: UTF8.self)
            }
        }

        deinit { if process.isRunning { process.terminate() } }

        func end() -> Int32 {
            process.terminate()
            process.waitUntilExit()
            return process.terminationStatus
        }
    }

    @Test func aClientFindsInTheFolderAllThatItNeeds() throws {
        let folder = try WorkingFolder()
        let program = try Program(
            ["--subscriptions", "40", "--environment", "both", "--clock", "2026-01-01"],
            in: folder
        )
        let file = try Data(contentsOf: URL(filePath: folder.path + "/store/appstore.json"))
        let described = try #require(WireValue(reading: Array(file)))
        let keyFile = try #require(described["keyFile"]?.text)
        #expect(
            APIKey.warning(fileName: (keyFile as NSString).lastPathComponent, keyID: "SIMULATED1")
                == nil
        )
        let pem = try String(contentsOfFile: "\(folder.path)/\(keyFile)", encoding: .utf8)
        let key = try #require(SigningKey(pem: pem))
        let credentials = StoreCredentials(
            issuerID: try #require(described["issuerId"]?.text),
            keyID: try #require(described["keyId"]?.text),
            key: try #require(PublicKey(publicKeyInfo: key.publicKeyInfo))
        )
        var configuration = HTTPClientConfiguration()
        configuration.trustAnchors = .file(folder.path + "/store/tls-ca.pem")
        let client = try HTTPClient(configuration)
        for name in ["production", "sandbox"] {
            let base = try #require(described[name]?.text)
            let listed = try client.send(
                HTTPClientRequest(.get, HTTPURL(base + "/simulator/v1/subscriptions?limit=1"))
            )
            let one = WireValue(reading: listed.body)?["subscriptions"]?.elements?.first
            let id = try #require(one?["originalTransactionId"]?.text)
            let token = credentials.token(
                key: key,
                bundleID: try #require(described["bundleId"]?.text),
                atSeconds: Int64(Date().timeIntervalSince1970)
            )
            let answer = try client.send(
                HTTPClientRequest(
                    .get,
                    HTTPURL(base + "/inApps/v1/subscriptions/" + id),
                    headers: ["Authorization": "Bearer \(token)"]
                )
            )
            #expect(answer.status == 200)
            let environment = WireValue(reading: answer.body)?["environment"]?.text
            #expect(environment?.lowercased() == name)
        }
        let mode = try FileManager.default.attributesOfItem(
            atPath: "\(folder.path)/\(keyFile)"
        )[.posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(program.end() == 0)
    }

    @Test(arguments: [
        (["--environment", "moon"], "production, sandbox or both"),
        (["--clock", "2019-01-01"], "from 2024 to 2030"),
        (["--listen", "here"], "--listen takes"),
        (["--webhook", "ftp://x"], "--webhook: the address"),
        (["--faults", "missing.json"], "cannot read missing.json"),
        (["--faults", "faults.json"], "requests is no array"),
        (["--tls-key", "x"], "go together"),
        (["--key", "faults.json"], "is no P-256 private key"),
    ])
    func whatCannotBeUsedIsNamed(words: [String], message: String) throws {
        let folder = try WorkingFolder()
        _ = try folder.file("faults.json", "{\"requests\": 1}")
        let run = try Subledger.run(["simulate", "serve"] + words, in: folder.path)
        #expect(run.status == 2)
        #expect(run.errors.contains(message), "\(run.errors)")
    }
}
