import Crypto
import EventLog
import Ledger
import Postgres
import Synchronization

@testable import LedgerService

/// A ledger, a clock and a counterpart of Apple's, for tests of extensions.
final class ExtensionBench {
    let log: LogFixture
    let apple: CounterpartApple
    var settings = ExtensionSettings()
    private let clock = Mutex(LogFixture.day(10))

    init() throws {
        log = try LogFixture()
        apple = CounterpartApple(database: log.connect, app: log.app)
    }

    var now: Timestamp {
        get { clock.withLock { $0 } }
        set {
            clock.withLock { $0 = newValue }
            apple.clock.withLock { $0 = newValue }
        }
    }

    func extensions(hasGateway: Bool = true) throws -> Extensions {
        let instant = now
        let result = try Extensions(
            reading: log.connect(),
            appending: log.connect(),
            gateway: hasGateway ? apple : nil,
            settings: settings,
            now: { instant }
        )
        result.serviceIdentity = "subledger test"
        return result
    }

    static func wish(
        _ subscription: String = "1000",
        days: Int = 7,
        ticket: String = "SUP-1",
        change: (inout ExtensionWish) -> Void = { _ in }
    ) -> ExtensionWish {
        var wish = ExtensionWish(
            subscription: subscription,
            days: days,
            reason: .serviceIssue,
            ticket: ticket
        )
        change(&wish)
        return wish
    }

    static let olga = ExtensionActor(
        osUser: "olga",
        host: "desk1",
        databaseRole: "ops",
        claimed: "Olga"
    )
    static let peter = ExtensionActor(
        tokenName: "peter",
        id: "0123456789ab",
        role: "operator",
        address: "192.0.2.7"
    )

    /// A month from T0 on that was bought, renewal on.
    func buy(
        _ stream: String = "1000",
        owner: UniqueID? = nil,
        change: (inout TransactionFact) -> Void = { _ in }
    ) throws {
        let month = LogFixture.month(UInt64(stream) ?? 1) {
            $0.price = 9_990
            $0.currency = "EUR"
            $0.storefront = "DEU"
            $0.appAccountToken = owner
            $0.webOrderLineItemID = AppleID("77")
            change(&$0)
        }
        apple.books.withLock { $0[stream] = month }
        try log.append([
            log.event(
                stream,
                "\(stream)-buy",
                .subscribed,
                .initialBuy,
                at: LogFixture.t0,
                month,
                LogFixture.renewal()
            )
        ])
    }

    /// The rows of the audit once everything is folded, by column.
    func audit(_ query: ExtensionQuery = ExtensionQuery()) throws -> [ExtensionAuditRow] {
        try Projector(log.connection).project()
        return try query.rows(limit: 1000, log.connection)
    }

    func extend(
        _ wish: ExtensionWish = wish(),
        by actor: ExtensionActor = olga
    ) throws -> ExtensionResult {
        try extensions().request(wish, by: actor)
    }
}

/// Apple's side, as far as an extension goes: what the books say, what is answered and what gets
/// lost on the way.
final class CounterpartApple: ExtensionGateway {
    enum Manner: Hashable {
        /// Does it and says so.
        case does
        /// Does it, and the answer gets lost.
        case losesTheAnswer
        /// The request gets lost.
        case losesTheRequest
        /// Refuses by a number.
        case refuses(Int)
        /// Does it and answers with a server's error.
        case failsAfterwards
        /// Says another end than the one that its notification will have.
        case misspeaks
    }

    func keyID(of app: AppKey) -> String? { "KEY1234567" }

    let books = Mutex<[String: TransactionFact]>([:])
    let manner = Mutex(Manner.does)
    let orders = Mutex<[ExtensionOrder]>([])
    let isAway = Mutex(false)
    let clock = Mutex(LogFixture.day(10))
    let massStanding = Mutex("{\"complete\":false}")
    let reads = Mutex(0)
    private let done = Mutex<Set<UniqueID>>([])
    private let database: @Sendable () throws -> Connection
    private let app: AppKey

    init(database: @escaping @Sendable () throws -> Connection, app: AppKey) {
        self.database = database
        self.app = app
    }

    func refreshStatuses(of id: String, in app: AppKey) throws {
        try refresh(id)
    }

    func refreshTransaction(_ id: String, in app: AppKey) throws {
        let stream = books.withLock { books in
            books.first { $0.value.transactionID.description == id }?.key
        }
        try refresh(stream ?? "")
    }

    /// Signs the subscription's transaction anew, as any answer of Apple's does.
    private func refresh(_ stream: String) throws {
        if isAway.withLock({ $0 }) { throw ExtensionGatewayFailure("HTTP 503") }
        reads.withLock { $0 += 1 }
        guard let transaction = books.withLock({ $0[stream] }) else { return }
        try append(stream, .transaction, nil, transaction)
    }

    /// Sends what Apple sends after an extension.
    func notify(_ stream: String, change: (inout TransactionFact) -> Void = { _ in }) throws {
        guard var transaction = books.withLock({ $0[stream] }) else { return }
        change(&transaction)
        try append(stream, .notification, .renewalExtended, transaction)
    }

    private func append(
        _ stream: String,
        _ kind: EventKind,
        _ type: NotificationType?,
        _ transaction: TransactionFact
    ) throws {
        let at = clock.withLock { $0 }
        var fact = Fact(kind: kind, provenance: .jws, factAt: at)
        fact.notificationType = type
        fact.signedAt = at
        fact.transaction = transaction
        fact.transaction?.signedDate = at
        fact.transaction?.digest = UInt64(
            bitPattern: transaction.expiresDate?.milliseconds ?? 0
        )
        let content = "\(stream) \(kind) \(String(describing: type)) \(at) \(transaction)"
        let received = Array(content.utf8)
        _ = try Appender(database()).append([
            NewEvent(
                app: app,
                stream: stream,
                eventKey: type == nil
                    ? "t:\(SHA256.digest(received).prefix(8))"
                    : "n:\(stream)-\(at.milliseconds)-\(transaction.expiresDate?.milliseconds ?? 0)",
                kind: kind,
                notificationType: type?.description,
                signedAt: at,
                received: received,
                form: .raw,
                contentDigest: SHA256.digest(received),
                fact: fact
            )
        ])
    }

    func extend(_ id: String, _ order: ExtensionOrder, in app: AppKey) -> ExtensionReply {
        orders.withLock { $0.append(order) }
        let manner = manner.withLock { $0 }
        switch manner {
        case .losesTheRequest: return ExtensionReply(httpStatus: nil, failure: "timed out")
        case .refuses(let code):
            return ExtensionReply(
                httpStatus: code / 10_000,
                body: Array("{\"errorCode\":\(code),\"errorMessage\":\"No.\"}".utf8)
            )
        case .does, .losesTheAnswer, .failsAfterwards, .misspeaks: break
        }
        let isNew = done.withLock { $0.insert(order.request).inserted }
        let end = books.withLock { books -> Timestamp in
            if isNew {
                let end = books[id]?.expiresDate ?? .earliest
                books[id]?.expiresDate = end.adding(.days(Int64(order.days)))
            }
            return books[id]?.expiresDate ?? .earliest
        }
        switch manner {
        case .losesTheAnswer: return ExtensionReply(httpStatus: nil, failure: "reset by peer")
        case .failsAfterwards: return ExtensionReply(httpStatus: 500, body: Array("<html>".utf8))
        default: break
        }
        let said = manner == .misspeaks ? end.adding(.days(1)) : end
        return ExtensionReply(
            httpStatus: 200,
            body: Array(
                """
                {"effectiveDate":\(said.milliseconds),"originalTransactionId":"\(id)",\
                "success":true,"webOrderLineItemId":"77"}
                """.utf8
            ),
            latency: Milliseconds(rawValue: 42)
        )
    }

    func extendAll(
        of product: String,
        storefronts: [String],
        _ order: ExtensionOrder,
        in app: AppKey
    ) -> ExtensionReply {
        orders.withLock { $0.append(order) }
        switch manner.withLock({ $0 }) {
        case .losesTheAnswer: return ExtensionReply(httpStatus: nil, failure: "reset by peer")
        default: break
        }
        return ExtensionReply(
            httpStatus: 200,
            body: Array("{\"requestIdentifier\":\"\(order.request)\"}".utf8)
        )
    }

    func massStatus(of product: String, request: UniqueID, in app: AppKey) -> ExtensionReply {
        ExtensionReply(httpStatus: 200, body: Array(massStanding.withLock { $0 }.utf8))
    }
}
