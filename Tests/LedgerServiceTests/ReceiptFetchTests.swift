import AppStore
import AppStoreSimulator
import Glibc
import Ledger
import SimulatorServer
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// verifyReceipt over HTTPS, as far as the fake App Store has it.
@Suite struct ReceiptFetchTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    private func secretFile(_ folder: ScratchFolder, _ text: String = secret) throws -> String {
        let path = try folder.file("secret", Array("\(text)\n".utf8))
        _ = unsafe chmod(path, 0o600)
        return path
    }

    private let surroundings = APISurroundings(
        now: { Timestamp(milliseconds: 1_790_000_000_000) },
        sleep: { _ in true }
    )

    @Test func productionIsAskedFirstAndTheSandboxWhereItsReceiptBelongs() throws {
        let clock = SimulatedClock(at: 1_767_225_600_000, speed: 0)
        let production = try LocalAppStore(subscriptions: 12, clock: clock)
        defer { production.server.stop() }
        let sandbox = try LocalAppStore(environment: .sandbox, subscriptions: 12, clock: clock)
        defer { sandbox.server.stop() }
        let folder = try ScratchFolder()
        var settings = AppStoreSettings()
        settings.productionURL = production.baseURL
        settings.sandboxURL = sandbox.baseURL
        settings.certificateAuthority = try folder.file(
            "ca.pem",
            Array((production.authorityPEM + sandbox.authorityPEM).utf8)
        )
        let client = try ReceiptDesk.client(
            settings,
            secretFile: secretFile(folder),
            excludesOld: false,
            surroundings: surroundings
        )
        for (store, environment) in [
            (production, StoreEnvironment.production), (sandbox, .sandbox),
        ] {
            let id = try #require(store.server.withStore { $0.subscriptionIDs.first })
            let receipt = FakeAppStore.receipt(of: id, in: environment)
            let answer = try client.ask(Array(receipt.utf8))
            #expect(answer.environment.description == environment.rawValue)
            let body = try ReceiptBody(answer.body)
            #expect(body.status.code == 0)
            #expect(body.environment == answer.environment)
            let content = body.content(asOf: try #require(body.requestDate))
            #expect(content.elements.contains { $0.originalTransactionID == id })
            #expect(content.unreadable == [])
        }
        let stranger = Array(FakeAppStore.receipt(of: "99", in: .production).utf8)
        #expect(try ReceiptBody(client.ask(stranger).body).status.code == 21_010)
        let wrong = try ReceiptDesk.client(
            settings,
            secretFile: secretFile(folder, "fedcba9876543210"),
            excludesOld: true,
            surroundings: surroundings
        )
        #expect(try ReceiptBody(wrong.ask(stranger).body).status.code == 21_004)
    }

    @Test func aSecretThatOthersCanReadIsRefusedAndNeverShown() throws {
        let folder = try ScratchFolder()
        let path = try secretFile(folder)
        #expect(try ReceiptDesk.secret(file: path) == Self.secret)
        _ = unsafe chmod(path, 0o644)
        let error = #expect(throws: InputError.self) { try ReceiptDesk.secret(file: path) }
        #expect(error?.message.contains("chmod 600") == true)
        for text in ["", "two\nlines", "with \"quotes\"", "short"] {
            let path = try secretFile(folder, text)
            let error = #expect(throws: InputError.self) { try ReceiptDesk.secret(file: path) }
            #expect(error?.message.contains("quotes") == false)
        }
    }

    /// Answers with the next status of a list.
    private final class Script: Transport {
        let answers: Mutex<[(status: Int, body: String)]>
        let asked = Mutex<[String]>([])

        init(_ answers: [(status: Int, body: String)]) { self.answers = Mutex(answers) }

        func send(_ request: TransportRequest) throws(TransportFailure) -> TransportResponse {
            asked.withLock { $0.append(request.url) }
            let next = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let next else {
                throw TransportFailure(code: .unreachable, message: "nobody is there")
            }
            return TransportResponse(status: next.status, body: Array(next.body.utf8))
        }
    }

    private func client(_ script: Script) -> ReceiptClient {
        ReceiptClient(secret: Self.secret, transport: script, surroundings: surroundings)
    }

    @Test func whatPassesIsAskedAgainAndWhatStaysIsNot() throws {
        let receipt = Array("MIIT".utf8)
        let passing = Script([
            (503, ""), (200, #"{"status":21005}"#),
            (200, #"{"status":21150,"is_retryable":true}"#), (200, #"{"status":0}"#),
        ])
        #expect(try ReceiptBody(client(passing).ask(receipt).body).status.code == 0)
        #expect(passing.asked.withLock(\.count) == 4)
        let lasting = Script([(200, #"{"status":21003}"#)])
        #expect(try ReceiptBody(client(lasting).ask(receipt).body).status.code == 21_003)
        let stubborn = Script(Array(repeating: (200, #"{"status":21009}"#), count: 9))
        #expect(try ReceiptBody(client(stubborn).ask(receipt).body).status.code == 21_009)
        #expect(stubborn.asked.withLock(\.count) == 4)
        let away = Script([])
        let failure = #expect(throws: ReceiptClient.Failure.self) {
            try client(away).ask(receipt)
        }
        #expect(failure?.kind == .transport)
        let refused = Script([(400, "")])
        #expect(throws: ReceiptClient.Failure.self) { try client(refused).ask(receipt) }
        #expect(refused.asked.withLock(\.count) == 1)
    }

    @Test func aSandboxReceiptGoesToBothAndAnswersEndThere() throws {
        let script = Script([(200, #"{"status":21007}"#), (200, #"{"status":21008}"#)])
        let answer = try client(script).ask(Array("MIIT".utf8))
        #expect(answer.environment == .sandbox)
        #expect(
            script.asked.withLock { $0 } == [ReceiptClient.productionURL, ReceiptClient.sandboxURL]
        )
    }

    @Test func aLineHoldsAReceiptInAnyOfItsForms() {
        let lines = [
            "MII T", #"{"receipt-data":"MIIT"}"#, #"{"status":0,"latest_receipt":"MIIT"}"#,
            #"{"notification_type":"X","unified_receipt":{"latest_receipt":"MIIT"}}"#,
        ]
        for line in lines {
            #expect(ReceiptClient.receipt(ofLine: Array(line.utf8)) == Array("MIIT".utf8))
        }
        #expect(ReceiptClient.receipt(ofLine: Array("{}".utf8)) == nil)
        for text in ["", "a\"b", "é"] {
            #expect(throws: ReceiptClient.Failure.self) {
                try client(Script([])).ask(Array(text.utf8))
            }
        }
    }
}
