import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Glibc
import Ledger
import LedgerService
import Postgres
import Synchronization
import TestSupport

/// Answers for Apple: what a test puts in, by endpoint.
final class AppleDouble: Transport {
    /// A notification in Apple's history.
    struct Sent: Sendable {
        var at: Int64
        var payload: [UInt8]
        var attempts: [(at: Int64, result: String)]
    }

    struct State: Sendable {
        var notifications: [Sent] = []
        /// Bodies by path, for everything else.
        var bodies: [String: String] = [:]
        var requests: [TransportRequest] = []
        /// Answers instead of what would be answered, by the number of the request from 1.
        var faults: [Int: (status: Int, body: String)] = [:]
        /// Answers of one host instead of what would be answered.
        var hostFaults: [String: Int] = [:]
        var pages = 20
    }

    let state = Mutex(State())

    var requests: [TransportRequest] { state.withLock { $0.requests } }

    func send(_ request: TransportRequest) throws(TransportFailure) -> TransportResponse {
        state.withLock { state in
            state.requests.append(request)
            if let fault = state.faults[state.requests.count] {
                return TransportResponse(status: fault.status, body: Array(fault.body.utf8))
            }
            let host = String(request.url.dropFirst(8).prefix { $0 != "/" })
            if let status = state.hostFaults[host] { return TransportResponse(status: status) }
            let target = request.url.dropFirst(8).drop { $0 != "/" }
            let path = String(target.prefix { $0 != "?" })
            if path == "/inApps/v1/notifications/history" { return history(state, request, target) }
            guard let body = state.bodies[path] else {
                return TransportResponse(status: 404, body: Array(#"{"errorCode":4040010}"#.utf8))
            }
            return TransportResponse(status: 200, body: Array(body.utf8))
        }
    }

    private func history(
        _ state: State,
        _ request: TransportRequest,
        _ target: Substring
    ) -> TransportResponse {
        guard let body = try? JSONDocument(request.body ?? []),
            let from = try? body["startDate"]?.int64(), let to = try? body["endDate"]?.int64()
        else { return TransportResponse(status: 400) }
        let onlyFailures = body["onlyFailures"]?.bool ?? false
        let listed = state.notifications.filter { sent in
            sent.at >= from && sent.at < to
                && (!onlyFailures || sent.attempts.contains { $0.result != "SUCCESS" })
        }
        let offset = target.firstRange(of: "paginationToken=").flatMap {
            Int(target[$0.upperBound...])
        }
        let start = offset ?? 0
        let page = listed.dropFirst(start).prefix(state.pages)
        let items = page.map { sent in
            let attempts = sent.attempts.map {
                #"{"attemptDate":\#($0.at),"sendAttemptResult":"\#($0.result)"}"#
            }
            let text = String(decoding: sent.payload, as: UTF8.self)
            return
                #"{"signedPayload":"\#(text)","sendAttempts":[\#(attempts.joined(separator: ","))]}"#
        }
        let next = start + page.count
        let more =
            next < listed.count
            ? #""hasMore":true,"paginationToken":"\#(next)""# : #""hasMore":false"#
        let answer = #"{"notificationHistory":[\#(items.joined(separator: ","))],\#(more)}"#
        return TransportResponse(status: 200, body: Array(answer.utf8))
    }
}

/// A ledger, Apple's double, and what asks it.
struct ReconcileSample {
    let sample: IngestSample
    let apple = AppleDouble()
    let app = AppKey(bundleID: IngestSample.bundleID, environment: .sandbox)
    /// What our clock says.
    let now = Timestamp(milliseconds: 1_700_600_000_000)

    init() throws {
        sample = try IngestSample()
        let book = RuleBook(try sample.database.connect())
        try book.record(AppRules(environment: .sandbox), of: app)
    }

    var surroundings: APISurroundings {
        let now = now
        return APISurroundings(
            now: { now },
            sleep: { _ in true },
            // Waits are short, ids are not the same.
            random: { $0.lowerBound < 0 ? .random(in: $0) : $0.lowerBound }
        )
    }

    /// A client of an app with Sandbox, and Production too where it is asked for.
    func clients(
        _ environments: Set<Ledger.Environment> = [.sandbox],
        isUnreleased: Bool = false
    ) throws -> AppStoreClients {
        let folder = try ScratchFolder()
        let path = try folder.file("key.p8", Array(SigningKey(seed: [7]).pem.utf8))
        _ = unsafe chmod(path, 0o600)
        var configuration = Configuration()
        configuration.appStore.issuerID = "57246542-96fe-1a63-e053-0824d011072a"
        configuration.appStore.keyID = "2X9R4HXF34"
        configuration.appStore.keyFile = path
        var own = Configuration.App(bundleID: app.bundleID)
        own.isUnreleased = isUnreleased
        configuration.apps = [own]
        return try AppStoreClients(
            apps: [
                AcceptedApp(
                    bundleID: app.bundleID,
                    appAppleID: 1,
                    environments: environments
                )
            ],
            configuration: configuration,
            transport: apple,
            surroundings: surroundings
        )
    }

    /// A recorder, whose anchor may be missing: it takes nothing then.
    func recorder(hasAnchor: Bool = true) throws -> ResponseRecorder {
        let database = sample.database
        let app = AcceptedApp(
            bundleID: IngestSample.bundleID,
            appAppleID: nil,
            environments: [.sandbox]
        )
        let blind = Verifier(anchors: TrustAnchors(), apps: [app])
        let verifier = hasAnchor ? try sample.verifier() : blind
        return ResponseRecorder(run: "test", verifier: verifier) { try database.connect() }
    }

    func backfill(hasAnchor: Bool = true) throws -> Backfill {
        let account = try clients().accounts[0]
        return Backfill(account, try recorder(hasAnchor: hasAnchor), now: { now })
    }

    /// Signs a transaction of a chain, at an instant, with changes.
    func transaction(
        _ number: Int,
        at signedDate: Int64,
        change: (inout WireValue) -> Void = { _ in }
    ) -> String {
        let chain = sample.chain(number)
        let notice = Notice.initialBuy(of: chain)
        guard let transaction = notice.transaction else { return "" }
        var payload = chain.payload(transaction)
        payload["signedDate"] = .integer(signedDate)
        change(&payload)
        let signer = sample.signer.authority.signer(at: signedDate)
        return String(decoding: signer.sign(payload), as: UTF8.self)
    }

    /// Signs a renewal info of a chain.
    func renewal(_ number: Int, at signedDate: Int64, autoRenewStatus: Int64 = 1) -> String {
        let chain = sample.chain(number)
        let notice = Notice.initialBuy(of: chain)
        guard let renewal = notice.renewal else { return "" }
        var payload = chain.payload(renewal)
        payload["signedDate"] = .integer(signedDate)
        payload["autoRenewStatus"] = .integer(autoRenewStatus)
        let signer = sample.signer.authority.signer(at: signedDate)
        return String(decoding: signer.sign(payload), as: UTF8.self)
    }

    /// A StatusResponse of one subscription.
    func statuses(
        _ number: Int,
        at signedDate: Int64,
        status: Int = 1,
        change: (inout WireValue) -> Void = { _ in }
    ) -> String {
        let chain = sample.chain(number)
        return """
            {"environment":"Sandbox","bundleId":"\(app.bundleID)","data":[
            {"subscriptionGroupIdentifier":"1","lastTransactions":[
            {"originalTransactionId":"\(chain.originalTransactionID)","status":\(status),
            "signedTransactionInfo":"\(transaction(number, at: signedDate, change: change))",
            "signedRenewalInfo":"\(renewal(number, at: signedDate))"}]}]}
            """
    }

    /// A HistoryResponse.
    func history(_ transactions: [String], revision: String, hasMore: Bool = false) -> String {
        let list = transactions.map { "\"\($0)\"" }.joined(separator: ",")
        return """
            {"appAppleId":1,"bundleId":"\(app.bundleID)","environment":"Sandbox",
            "hasMore":\(hasMore),"revision":"\(revision)","signedTransactions":[\(list)]}
            """
    }

    /// Puts the first purchases of so many chains into Apple's history, an hour apart.
    func fill(_ numbers: ClosedRange<Int>, result: String = "TIMED_OUT") {
        let start = now.milliseconds - 86_400_000 * 4
        for number in numbers {
            let at = start + Int64(number) * 3_600_000
            let sent = AppleDouble.Sent(
                at: at,
                payload: sample.purchase(number),
                attempts: [(at, result)]
            )
            apple.state.withLock { $0.notifications.append(sent) }
        }
    }

    func count(_ sql: String) throws -> Int64? { try sample.count(sql) }

    /// How many notifications the log has.
    func notifications() throws -> Int64? {
        try count("select count(*) from ledger.event where kind = 'notification'")
    }
}
