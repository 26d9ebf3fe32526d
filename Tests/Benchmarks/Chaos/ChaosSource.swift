internal import AppStoreSimulator
internal import Crypto
internal import Glibc
internal import Postgres
internal import Synchronization

/// Makes the notifications of ever new subscriptions, many lives side by side, signed when due.
final class ChaosSource {
    /// How many subscriptions have news in turn.
    private static let livesAtOnce = 150
    private static let hour: Int64 = 3_600_000

    private let seed: UInt64
    private let authority: TestCertificateAuthority
    private let environment: String
    /// Percent of the subscriptions that were bought in the last hour: their news is of now.
    private let freshPercent: Int
    private var random: ChaosRandom
    private var next: Int
    private var open: [(life: Life, place: Int)] = []
    /// What was signed beforehand, the last first.
    private var ready: [Notification] = []

    /// A signed text, its UUID and its subscription.
    typealias Notification = (signed: [UInt8], uuid: String, stream: String)

    /// Prepares a source whose first subscription has the number `first`; where sources share a
    /// seed, their numbers must differ.
    init(
        seed: UInt64,
        authority: TestCertificateAuthority,
        environment: String = "Sandbox",
        first: Int = 0,
        freshPercent: Int = 0
    ) {
        self.seed = seed
        self.authority = authority
        self.environment = environment
        self.freshPercent = freshPercent
        next = first
        random = ChaosRandom(seed: seed, stream: UInt64(first) &+ 1)
    }

    /// The authority of a seed, good for two years up to an instant.
    static func authority(seed: UInt64, until: Int64) -> TestCertificateAuthority {
        let years: Int64 = 3 * 365 * 24 * hour
        return TestCertificateAuthority(seed: seed, from: until - years, until: until + 24 * hour)
    }

    /// Signs the next notifications now, for when signing would take the time of what is measured.
    func prepare(_ count: Int) { ready = (0..<count).map { _ in make() }.reversed() + ready }

    /// The next notification.
    func make() -> Notification {
        if let notification = ready.popLast() { return notification }
        while true {
            while open.count < Self.livesAtOnce { open.append((drawn(), 0)) }
            let chosen = random.below(open.count)
            let (life, place) = open[chosen]
            guard place < life.notices.count else {
                open.swapAt(chosen, open.count - 1)
                open.removeLast()
                continue
            }
            open[chosen].place += 1
            let notice = life.notices[place]
            // What the Server API answers is not delivered.
            if notice.form == .answer { continue }
            let signed = NoticeSigner(authority: authority).sign(notice, of: life.chain)
            return (signed, notice.uuid, life.chain.originalTransactionID)
        }
    }

    private func drawn() -> Life {
        defer { next += 1 }
        let now = Self.now()
        let isFresh = random.chance(freshPercent)
        let from = now - (isFresh ? 2 * Self.hour : 2 * 365 * 24 * Self.hour)
        var life = Life(number: next, seed: seed, from: from, until: now)
        life.move(to: environment)
        return life
    }

    /// Our clock, ms since 1970.
    static func now() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The request that delivers a signed text.
    static func message(_ signed: [UInt8]) -> [UInt8] {
        let body = NoticeSigner.line(signed)
        let head = """
            POST /v1/notifications HTTP/1.1\r
            Host: localhost\r
            Content-Type: application/json\r
            Content-Length: \(body.count)\r
            \r

            """
        return Array(head.utf8) + body
    }
}
