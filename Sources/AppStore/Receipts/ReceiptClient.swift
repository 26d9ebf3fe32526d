public import Ledger

/// Asks Apple's verifyReceipt, which is deprecated and still answers.
///
/// Production is asked first, and the Sandbox where Production says that the receipt is one of its:
/// App Review buys in the Sandbox with the app of the store. The shared secret goes into bodies and
/// nowhere else.
public struct ReceiptClient: Sendable {
    /// Apple's address for Production.
    public static let productionURL = "https://buy.itunes.apple.com/verifyReceipt"
    /// Apple's address for the Sandbox.
    public static let sandboxURL = "https://sandbox.itunes.apple.com/verifyReceipt"
    /// How often one address is asked at most.
    static let attemptsMax = 4

    /// What Apple answered.
    public struct Answer: Sendable {
        /// The body, whole.
        public var body: [UInt8]
        /// Who answered.
        public var environment: Environment
        /// When it was received.
        public var receivedAt: Timestamp
    }

    /// Why there is no answer; `message` is safe to log.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// The kinds of failure.
        public enum Kind: String, Hashable, Sendable {
            /// Nobody answered.
            case transport
            /// The answer was no success of HTTP.
            case http
            /// The receipt is no base64.
            case receipt
            /// The wait was cut short.
            case stopped
        }

        /// What kind it is.
        public var kind: Kind
        /// What to read.
        public var message: String

        /// The message.
        public var description: String { message }
    }

    private let addresses: [(environment: Environment, url: String)]
    private let secret: String
    private let excludesOld: Bool
    private let transport: any Transport
    private let surroundings: APISurroundings

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - productionURL: the address for Production.
    ///   - sandboxURL: the address for the Sandbox.
    ///   - secret: the app's shared secret.
    ///   - excludesOld: whether only the newest period of each subscription is asked for.
    ///   - transport: what carries the requests.
    ///   - surroundings: clock, sleep and chance.
    public init(
        productionURL: String = ReceiptClient.productionURL,
        sandboxURL: String = ReceiptClient.sandboxURL,
        secret: String,
        excludesOld: Bool = false,
        transport: any Transport,
        surroundings: APISurroundings
    ) {
        addresses = [(.production, productionURL), (.sandbox, sandboxURL)]
        self.secret = secret
        self.excludesOld = excludesOld
        self.transport = transport
        self.surroundings = surroundings
    }

    /// Asks about a receipt.
    ///
    /// - Parameter receipt: the receipt's base64 text.
    /// - Returns: the last answer, whatever its status.
    /// - Throws: `Failure` where there is none.
    public func ask(_ receipt: [UInt8]) throws(Failure) -> Answer {
        guard Self.isBase64(receipt) else {
            throw Failure(kind: .receipt, message: "the receipt is no base64")
        }
        let body = body(receipt)
        let first = try ask(addresses[0], body)
        guard Self.status(first.body)?.code == 21_007 else { return first }
        return try ask(addresses[1], body)
    }

    /// How one attempt went.
    private enum Attempt {
        /// There is an answer, and asking again would give no other.
        case answered(Answer)
        /// Asking again may help: what there is if it does not, and when to ask.
        case passing(Result<Answer, Failure>, retryAt: Timestamp?)
    }

    private func ask(
        _ address: (environment: Environment, url: String),
        _ body: [UInt8]
    ) throws(Failure) -> Answer {
        var attempts = 0
        while true {
            attempts += 1
            switch try attempt(address, body) {
            case .answered(let answer): return answer
            case .passing(let result, let retryAt):
                if attempts == Self.attemptsMax { return try result.get() }
                try wait(attempts, until: retryAt)
            }
        }
    }

    private func attempt(
        _ address: (environment: Environment, url: String),
        _ body: [UInt8]
    ) throws(Failure) -> Attempt {
        let response: TransportResponse
        do {
            response = try transport.send(
                TransportRequest(
                    method: "POST",
                    url: address.url,
                    headers: [
                        .init("Content-Type", "application/json"),
                        .init("Accept", "application/json"), .init("User-Agent", "subledger"),
                    ],
                    body: body
                )
            )
        } catch {
            let failure = Failure(kind: .transport, message: "\(error)")
            guard error.isRetryable else { throw failure }
            return .passing(.failure(failure), retryAt: nil)
        }
        let now = surroundings.now()
        let retryAt = RetryAfter.instant(response.header("Retry-After"), now: now)
        guard response.status == 200 else {
            let failure = Failure(
                kind: .http,
                message: "\(address.environment) answered HTTP \(response.status)"
            )
            guard response.status == 429 || response.status >= 500 else { throw failure }
            return .passing(.failure(failure), retryAt: retryAt)
        }
        let answer = Answer(
            body: response.body,
            environment: address.environment,
            receivedAt: now
        )
        let isPassing = Self.status(response.body)?.isRetryable ?? false
        return isPassing ? .passing(.success(answer), retryAt: retryAt) : .answered(answer)
    }

    private func wait(_ attempt: Int, until retryAt: Timestamp?) throws(Failure) {
        var pause = Milliseconds(rawValue: 500 << Int64(attempt))
        if let retryAt {
            let length = retryAt.milliseconds - surroundings.now().milliseconds
            pause = Milliseconds(rawValue: min(max(pause.rawValue, length), 60_000))
        }
        guard surroundings.sleep(pause) else {
            throw Failure(kind: .stopped, message: "stopped while it waited")
        }
    }

    private func body(_ receipt: [UInt8]) -> [UInt8] {
        // Neither base64 nor a secret that was let through needs an escape.
        var text = Array("{\"receipt-data\":\"".utf8) + receipt
        text += Array("\",\"password\":\"\(secret)\"".utf8)
        if excludesOld { text += Array(",\"exclude-old-transactions\":true".utf8) }
        return text + [UInt8(ascii: "}")]
    }

    private static func status(_ body: [UInt8]) -> ReceiptStatus? {
        (try? ReceiptBody(body))?.status
    }

    private static func isBase64(_ text: [UInt8]) -> Bool {
        !text.isEmpty
            && text.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): true
                default: false
                }
            }
    }
}

extension ReceiptClient {
    /// The receipt of a line: the base64 text itself, or the one that an object holds.
    ///
    /// Objects are requests of verifyReceipt (`receipt-data`), its responses (`latest_receipt`) and
    /// notifications of version 1 (`latest_receipt` within `unified_receipt`); nil for any other.
    public static func receipt(ofLine line: [UInt8]) -> [UInt8]? {
        let content = line.filter { $0 > 0x20 }
        guard content.first == UInt8(ascii: "{") else {
            // Base64 for people has its lines broken, and texts of JSON their strokes escaped.
            return content.isEmpty ? nil : content
        }
        guard let document = try? JSONDocument(line) else { return nil }
        let found =
            document["receipt-data"] ?? document["latest_receipt"]
            ?? document["unified_receipt"]?["latest_receipt"]
        return found?.textBytes
    }
}
