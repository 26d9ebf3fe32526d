import AppStore
import AppStoreSimulator
import Dispatch
import Foundation
import FoundationNetworking
import HTTP
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Other people's public reports of class F, each with the outcome that is right.
///
/// What is about sockets in f01, and f02 whole, are among the tests of the HTTP server.
@Suite struct OperationCaseTests {
    @Test func f01ALongNoticeIsNoTooLongOne() throws {
        let bench = try DeliveryBench()
        let long = bench.sample.purchase(1) {
            $0["data"]?["later"] = .string(String(repeating: "x", count: 24_000))
        }
        #expect(long.count > 24_000)
        #expect(bench.deliver(long)?.reason == "stored")
        // What the server is told of the route is what the webhook says.
        let route = Service.routes { nil }.first { $0.bodyLimitBytes > 0 }
        #expect(route?.bodyLimitBytes == Webhook.bodySizeMaxBytes)
        #expect(Webhook.bodySizeMaxBytes < 2_000_000)
    }

    @Test func f03AfterAFailoverTheServiceFindsTheNewPrimaryByItself() throws {
        let sample = try IngestSample()
        let database = sample.database
        var limits = Committer.Limits()
        limits.patience = .milliseconds(50)
        let committer = Committer(limits: limits) { try database.connect() }
        let bench = try DeliveryBench(committer: committer, sample: sample)
        #expect(bench.deliver(sample.purchase(1))?.reason == "stored")

        // What is reached under the old address refuses to write from now on.
        let admin = try database.connect()
        try admin.execute(
            """
            alter database \(database.name) set default_transaction_read_only = on;
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
            """
        )
        let refused = bench.deliver(sample.purchase(2))
        #expect(refused?.status == 503)
        #expect(refused?.reason == "database_unavailable")
        #expect((refused?.retryAfterSeconds ?? 0) > 0)
        #expect(committer.isAway)

        // The session that was opened meanwhile can read and never write; it is not kept.
        try admin.execute("alter database \(database.name) reset default_transaction_read_only")
        #expect(bench.deliver(sample.purchase(2))?.reason == "stored")
        #expect(!committer.isAway)
        #expect(try bench.count("ledger.event") == 2)
        committer.stop()
    }

    @Test func f04AfterABurstThePoolIsAsItWasBefore() throws {
        let database = try TestDatabase.create()
        let gate = DispatchSemaphore(value: 0)
        let answered = Atomic<Int>(0)
        let pool = ReadPool(size: 5, connect: { try database.connect() }, failed: { _ in })
        let work: @Sendable (Connection) throws -> HTTPResponse = { connection in
            gate.wait()
            _ = try connection.query("select 1")
            answered.add(1, ordering: .relaxed)
            return HTTPResponse(status: 200)
        }
        // Half of those who ask go away at once; the others wait.
        var waiting: [Answer] = []
        let most = ReadPool.waitingMax + 5
        for number in 0..<most {
            let answer = pool.answer(work)
            if number % 2 == 0 { waiting.append(answer) }
            // The threads take theirs before the rest fills what may wait.
            while number == 4, pool.waiting > 0 { usleep(1000) }
        }
        #expect(pool.waiting == ReadPool.waitingMax)
        // What is beyond the bound is turned away, never queued.
        for _ in 0..<20 { _ = pool.answer(work) }
        #expect(pool.waiting == ReadPool.waitingMax)
        for _ in 0..<most { gate.signal() }
        for _ in 0..<10_000 where answered.load(ordering: .relaxed) < most { usleep(1000) }
        let isDone = DispatchSemaphore(value: 0)
        _ = pool.answer { connection in
            let sessions = try connection.query(
                """
                select count(*) from pg_stat_activity
                where datname = current_database() and backend_type = 'client backend'
                """
            )
            #expect((1...5).contains(sessions.int(0, 0) ?? 0))
            isDone.signal()
            return HTTPResponse(status: 200)
        }
        isDone.wait()
        pool.stop()
        let count = answered.load(ordering: .relaxed)
        #expect(count == most)
        #expect(pool.waiting == 0)
        #expect(waiting.count == (most + 1) / 2)
    }

    @Test func f05ADeadlockRepeatsTheWholeTransactionAFewTimes() throws {
        let sample = try IngestSample()
        let database = sample.database
        let admin = try database.connect()
        // A sequence counts on when a transaction is rolled back.
        try admin.execute(
            """
            create sequence public.tries;
            create function public.collide() returns trigger language plpgsql as $$
            begin
                if nextval('public.tries') <= 2 then
                    raise exception 'deadlock detected' using errcode = '40P01';
                end if;
                return null;
            end $$;
            create trigger collide before insert on ledger.mark
                for each statement execute function public.collide()
            """
        )
        var limits = Committer.Limits()
        limits.patience = .milliseconds(1)
        let committer = Committer(limits: limits) { try database.connect() }
        let bench = try DeliveryBench(committer: committer, sample: sample)
        let answer = bench.deliver(sample.purchase(1))
        #expect(answer?.reason == "stored")
        #expect(answer?.position == 1)
        #expect(try sample.count("select last_value from public.tries") == 3)
        #expect(try bench.count("ledger.event") == 1)
        #expect(committer.measures.failures.value == 0, "the sender was not kept waiting for it")

        // One that stays is temporary, and leaves nothing behind.
        try admin.execute("alter sequence public.tries increment -1 minvalue -1000 restart 2")
        let refused = bench.deliver(sample.purchase(2))
        #expect(refused?.status == 503)
        #expect(refused?.reason == "database_unavailable")
        #expect(try bench.count("ledger.event") == 1)
        try admin.execute("drop trigger collide on ledger.mark")
        #expect(bench.deliver(sample.purchase(2))?.position == 2)
        committer.stop()
    }

    @Test func f06RefusalsAreCountedByReasonAndListed() throws {
        let bench = try DeliveryBench()
        let other = bench.sample.purchase(1, bundleID: "com.example.other")
        for _ in 0..<150 { #expect(bench.deliver(other)?.status == 400) }
        for _ in 0..<50 { #expect(bench.deliver(body: Array("{".utf8))?.status == 400) }
        let measures = bench.webhook.measures
        #expect(measures.value(of: "bundle_id") == 150)
        #expect(measures.value(of: "bad_json") == 50)
        #expect(measures.value(of: "stored") == 0)
        bench.refusals.drain()
        let latest = try RefusedDelivery.latest(500, bench.sample.database.connect())
        #expect(latest.count + bench.refusals.lost.value == 200)
        #expect(Set(latest.map(\.reason)).isSubset(of: ["bundle_id", "bad_json"]))
        #expect(!latest.isEmpty)
    }

    /// Bad notices, wrong tokens and failing queries: the log names them and shows none of them.
    @Test func f07NothingSecretIsInTheLog() throws {
        let sample = try IngestSample()
        let database = sample.database
        let folder = try ScratchFolder()
        let path = try folder.file("service.log", [])
        let file = try #require(FileHandle(forWritingAtPath: path))
        let connect: @Sendable () throws -> Connection = { try database.connect() }
        let address = try #require(IPAddress("127.0.0.1"))
        let service = try Service(
            options: .init(http: HTTPServerConfiguration(address: address, port: 0)),
            verifier: sample.verifier(),
            sessions: .init(
                appender: connect,
                projector: connect,
                reader: connect,
                auditor: connect
            ),
            log: ServiceLog(descriptor: file.fileDescriptor) { IngestSample.now },
            now: { IngestSample.now }
        )
        let admin = try database.connect()
        let (token, _) = try APITokens(admin).create(.auditor, name: "test", by: "kim")
        let good = sample.purchase(1)
        var forged = sample.purchase(2)
        forged[forged.count - 8] = forged[forged.count - 8] == 65 ? 66 : 65
        let base = "http://127.0.0.1:\(service.port)"
        for (text, status) in [(good, 200), (forged, 400)] {
            let body = Array("{\"signedPayload\":\"".utf8) + text + Array("\"}".utf8)
            #expect(Self.status("\(base)/v1/notifications", body: body) == status)
        }
        let key = Array("{\"signedPayload\":\"-----BEGIN PRIVATE KEY-----\"}".utf8)
        #expect(Self.status("\(base)/v1/notifications", body: key) == 400)
        // The server's own words would show a row: its detail is not for the log.
        try admin.execute(
            """
            create function public.tell() returns trigger language plpgsql as $$
            begin
                raise exception 'refused' using errcode = '40001',
                    detail = 'Failing row contains (password hunter2, eyJhbGciOi).';
            end $$;
            create trigger tell before insert on ledger.mark
                for each statement execute function public.tell();
            alter table ledger.event rename to event_elsewhere
            """
        )
        let query = "\(base)/v1/subscriptions/2000000000000001/events"
        #expect(Self.status(query, token: "\(token)x") == 401)
        #expect((Self.status(query, token: token) ?? 0) >= 500)
        try admin.execute("alter table ledger.event_elsewhere rename to event")
        let third = sample.purchase(3)
        let body = Array("{\"signedPayload\":\"".utf8) + third + Array("\"}".utf8)
        #expect(Self.status("\(base)/v1/notifications", body: body) == 503)
        service.stop(within: .seconds(5))

        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains("\"request\""))
        #expect(text.contains("\"query_failed\""))
        let secret = String(token.suffix(20))
        for word in ["eyJ", "BEGIN PRIVATE", "password", "hunter2", secret, "2000000000000001"] {
            #expect(!text.contains(word), "\(word)")
        }
    }

    /// The status that a request is answered, nil where there is no answer.
    private static func status(
        _ address: String,
        body: [UInt8]? = nil,
        token: String? = nil
    ) -> Int? {
        guard let url = URL(string: address) else { return nil }
        var request = URLRequest(url: url)
        if let body {
            request.httpMethod = "POST"
            request.httpBody = Data(body)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let status = Mutex<Int?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        URLSession.shared.dataTask(with: request) { _, response, _ in
            status.withLock { $0 = (response as? HTTPURLResponse)?.statusCode }
            isDone.signal()
        }.resume()
        isDone.wait()
        return status.withLock { $0 }
    }
}
