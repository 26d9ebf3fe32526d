import Foundation
import HTTP
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// What tells somebody that a service needs a look: metrics, the doctor's lines, tables for people.
@Suite struct WatchedServiceTests {
    private func service(
        _ sample: IngestSample,
        isAway: @escaping @Sendable () -> Bool = { false },
        _ change: (inout Service.Options) -> Void = { _ in }
    ) throws -> Service {
        let database = sample.database
        let connect: @Sendable () throws -> Connection = {
            if isAway() { throw PostgresError(code: .connection, message: "no server here") }
            return try database.connect()
        }
        let address = try #require(IPAddress("127.0.0.1"))
        var options = Service.Options(http: HTTPServerConfiguration(address: address, port: 0))
        change(&options)
        return try Service(
            options: options,
            verifier: sample.verifier(),
            sessions: .init(
                appender: connect,
                projector: connect,
                reader: connect,
                auditor: connect
            ),
            log: ServiceLog(descriptor: -1) { IngestSample.now },
            now: { IngestSample.now }
        )
    }

    private func ask(
        _ service: Service,
        _ path: String,
        _ token: String
    ) throws
        -> HTTPClientResponse
    {
        try HTTPClient().send(
            HTTPClientRequest(
                .get,
                try HTTPURL("http://127.0.0.1:\(service.port)\(path)"),
                headers: ["Authorization": "Bearer \(token)"]
            )
        )
    }

    @Test func metricsAreToldWhileTheDatabaseIsAway() throws {
        let sample = try IngestSample()
        let isAway = Atomic<Bool>(false)
        let service = try service(sample, isAway: { isAway.load(ordering: .relaxed) })
        let (token, _) = try APITokens(sample.database.connect())
            .create(.reader, name: "prometheus", by: "kim")
        let before = try ask(service, "/metrics", token)
        let page = String(decoding: before.body, as: UTF8.self)
        #expect(before.status == 200 && page.contains("subledger_database_up 1\n"))
        #expect(page.contains("subledger_log_position 0\n"))
        isAway.store(true, ordering: .relaxed)
        // The sessions that are open end too.
        try sample.database.connect().execute(
            """
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
            """
        )
        let after = try ask(service, "/metrics", token)
        let later = String(decoding: after.body, as: UTF8.self)
        #expect(after.status == 200 && later.contains("subledger_database_up 0\n"))
        #expect(!later.contains("subledger_log_position"))
        #expect(later.contains("subledger_append_waiting 0\n"))
        #expect(try ask(service, "/v1/events", token).status == 503)
        isAway.store(false, ordering: .relaxed)
        let again = try ask(service, "/metrics", token)
        #expect(String(decoding: again.body, as: UTF8.self).contains("subledger_database_up 1\n"))
        service.stop(within: .seconds(5))
    }

    @Test func f06TheAgeOfTheLastStoredNotificationIsTold() throws {
        let bench = try DeliveryBench()
        let connection = try bench.sample.database.connect()
        #expect(try Silence.all(connection).isEmpty)
        #expect(bench.deliver(bench.sample.purchase(1))?.status == 200)
        // What is refused is no sign of life.
        #expect(bench.deliver(body: Array("{".utf8))?.status == 400)
        let fresh = try #require(try Silence.all(connection).first)
        #expect(fresh.environment == "Sandbox" && !fresh.isOlder)
        #expect((0...600).contains(try #require(fresh.ageSeconds)))
        try connection.execute(
            """
            alter table ledger.event disable trigger all;
            update ledger.event set recorded_at = now() - interval '3 days 1 hour'
            """
        )
        let old = try #require(try Silence.all(connection).first)
        #expect((262_000...263_500).contains(try #require(old.ageSeconds)))
        func level(_ hours: Int64?) throws -> Diagnosis.Level? {
            var limits = Silence.Limits()
            limits.sandboxHours = hours
            let doctor = Doctor(
                connection,
                isEmbedded: false,
                acceptance: Acceptance(),
                now: { IngestSample.now },
                silenceLimits: limits
            )
            return try doctor.deliveries().first?.level
        }
        #expect(try level(nil) == .ok)
        #expect(try level(74) == .ok)
        #expect(try level(72) == .warn)
        let service = try service(
            bench.sample,
            isAway: { false },
            { $0.silence.sandboxHours = 72 }
        )
        let (token, _) = try APITokens(connection).create(.reader, name: "p", by: "kim")
        let answer = try ask(service, "/metrics", token)
        let page = String(decoding: answer.body, as: UTF8.self)
        let limit = "subledger_last_stored_age_limit_seconds{environment=\"Sandbox\"} 259200\n"
        #expect(page.contains(limit))
        #expect(page.contains("subledger_last_stored_age_seconds{environment=\"Sandbox\"} 262"))
        service.stop(within: .seconds(5))
    }

    @Test func theDoctorTellsOfForwarding() throws {
        let sample = try IngestSample()
        let connection = try sample.database.connect()
        func diagnoses(_ names: String...) throws -> [Diagnosis.Level] {
            let doctor = Doctor(
                connection,
                isEmbedded: false,
                acceptance: Acceptance(),
                now: { IngestSample.now },
                destinations: names
            )
            return try doctor.forwarding().map(\.level)
        }
        #expect(try diagnoses().isEmpty)
        #expect(try diagnoses("one") == [.warn])
        let store = ForwardStore(connection: connection, destination: "one", holder: "me")
        try store.begin(startPosition: nil)
        #expect(try diagnoses("one") == [.ok])
        #expect(try diagnoses("two") == [.warn, .warn])
        #expect(try store.claim(for: .seconds(60)))
        var result = ForwardResult(position: 0)
        let stream = HeldStream(position: 3, attempts: 1, dueAt: .now)
        result.changes[SubscriptionKey(appID: 1, stream: "s")] = .held(stream, failure: "no")
        #expect(try store.record(result))
        #expect(try diagnoses("one") == [.warn])
    }

    @Test func aFieldThatASpreadsheetWouldCalculateIsMarkedAndCanBeUnmarked() {
        let fields = [
            "=1+1", "+1", "-1+1", "@SUM(A1)", "\tx", "\r=1", "'quoted", "''", "-", "--1", "-1.5.2",
            "plain", "", "-12", "-0.5", "1.5", "a=b", "2026-01-31T00:00:00.000Z", "=\"a,b\"\n",
        ]
        var table = CSVTable([])
        table.add(fields)
        guard case .bytes(let bytes) = table.response().body else { return }
        // Without the ends of both lines, of which the first is empty.
        let read = Self.fields(String(decoding: bytes.dropFirst(2).dropLast(2), as: UTF8.self))
        #expect(read.count == fields.count)
        for (field, given) in zip(read, fields) {
            #expect((field.first == "'" ? String(field.dropFirst()) : field) == given)
            let isHarmless = field.first.map { !"=+@\t\r".contains($0) } ?? true
            #expect(isHarmless && (field.first != "-" || Double(field) != nil), "\(field)")
        }
        #expect(read.contains("-12") && read.contains("'=1+1") && read.contains("''quoted"))
    }

    /// The fields of one line, as RFC 4180 has them.
    private static func fields(_ line: String) -> [String] {
        var fields = [""]
        var isQuoted = false
        for scalar in line.unicodeScalars {
            if scalar == "\"" {
                // Two in a row are one: the first closes, the second opens again.
                if !isQuoted, fields[fields.count - 1].isEmpty == false {
                    fields[fields.count - 1] += "\""
                }
                isQuoted.toggle()
            } else if scalar == ",", !isQuoted {
                fields.append("")
            } else {
                fields[fields.count - 1].unicodeScalars.append(scalar)
            }
        }
        return fields
    }

    @Test func aThrottleLetsOneThroughAndCountsTheRest() {
        let time = Mutex(Duration.zero)
        let throttle = Throttle(interval: .seconds(60)) { time.withLock { $0 } }
        #expect(throttle.pass() == 0)
        for second in 1...59 {
            time.withLock { $0 = .seconds(second) }
            #expect(throttle.pass() == nil)
        }
        time.withLock { $0 = .seconds(60) }
        #expect(throttle.pass() == 59)
        #expect(throttle.pass() == nil)
        time.withLock { $0 = .seconds(500) }
        #expect(throttle.pass() == 1)
    }

    @Test func anAddressIsJudgedByItsCertificateAndItsAnswers() throws {
        let certificates = TestCertificates()
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        func levels(
            _ lifeSeconds: Int64,
            health: Int = 200,
            path: String = "/v1/notifications"
        )
            throws -> [Diagnosis.Level]
        {
            var configuration = HTTPServerConfiguration()
            configuration.tls = certificates.identity(to: lifeSeconds)
            let server = try HTTPServer(
                configuration: configuration,
                router: Router([
                    Route(.get, "/healthz") { _ in .answer(HTTPResponse(status: health)) },
                    Route(.post, path) { _ in .answer(HTTPResponse(status: 200)) },
                ])
            )
            defer { server.stop(within: .seconds(5)) }
            var client = HTTPClientConfiguration()
            client.trustAnchors = certificates.anchors
            let check = EndpointCheck(client: try HTTPClient(client), now: { now })
            let url = try HTTPURL("https://127.0.0.1:\(server.port)/")
            return check.publicAddress(url).map(\.level)
        }
        #expect(try levels(60 * 86_400) == [.ok, .ok])
        #expect(try levels(5 * 86_400)[0] == .warn)
        #expect(try levels(-60) == [.fail])
        #expect(try levels(60 * 86_400, health: 302) == [.fail])
        #expect(try levels(60 * 86_400, path: "/elsewhere") == [.ok, .fail])
        let check = EndpointCheck(client: try HTTPClient(), now: { now })
        #expect(check.publicAddress(try HTTPURL("http://127.0.0.1")).map(\.level) == [.fail])
    }
}
