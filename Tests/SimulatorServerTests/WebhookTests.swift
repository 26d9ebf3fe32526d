import AppStoreSimulator
import Dispatch
import Glibc
import HTTP
import SimulatorServer
import Synchronization
import Testing

/// Notifications that are posted to a webhook.
@Suite struct WebhookTests {
    /// A webhook that answers as it is told and keeps what it got.
    final class Webhook: Sendable {
        let got = Mutex<[[UInt8]]>([])
        let status = Atomic<Int>(200)
        private let server = Mutex<HTTPServer?>(nil)

        init() throws {
            let route = Route(.post, "/hook", bodyLimitBytes: 256 * 1024) { [self] request in
                got.withLock { $0.append(request.body) }
                return .answer(HTTPResponse(status: status.load(ordering: .relaxed)))
            }
            let server = try HTTPServer(
                configuration: HTTPServerConfiguration(),
                router: Router([route])
            )
            self.server.withLock { $0 = server }
        }

        var url: HTTPURL {
            get throws {
                let port = server.withLock { $0?.port } ?? 0
                return try HTTPURL("http://127.0.0.1:\(port)/hook")
            }
        }

        func stop() { server.withLock { $0 }?.stop(within: .seconds(1)) }
    }

    @Test func notificationsArePostedInOrderAndRecorded() throws {
        let webhook = try Webhook()
        defer { webhook.stop() }
        let poster = try WebhookPoster(webhook.url)
        let site = try ServedStoreTests.Site(deliver: { poster.post($0) })
        site.local.server.advance(byMilliseconds: 10 * ServedStoreTests.day)
        #expect(site.local.server.settle(within: .seconds(60)))
        let bodies = webhook.got.withLock { $0 }
        #expect(bodies.count > 3)
        let own = site.local.server.withStore { store in
            let request = StoreRequest(
                method: "GET",
                path: ["deliveries"],
                query: [(name: "limit", value: "1000")]
            )
            return store.control(request).body?["deliveries"]?.elements ?? []
        }.filter { ($0["signedDate"]?.number ?? 0) >= ServedStoreTests.opening }
        #expect(own.count == bodies.count)
        #expect(own.allSatisfy { $0["arrivals"] == 1 })
        for body in bodies {
            let members = WireValue(reading: body)?.members
            #expect(members?.map(\.name) == ["signedPayload"])
        }
    }

    @Test func aWebhookThatRefusesIsTriedAgainByTheSchedule() throws {
        let webhook = try Webhook()
        defer { webhook.stop() }
        webhook.status.store(503, ordering: .relaxed)
        let poster = try WebhookPoster(webhook.url)
        let site = try ServedStoreTests.Site(deliver: { poster.post($0) })
        let asked = try site.ask(.post, "/inApps/v1/notifications/test")
        let token = try #require(
            ServedStoreTests.json(asked)?["testNotificationToken"]?.text
        )
        func results() throws -> [String] {
            #expect(site.local.server.settle(within: .seconds(60)))
            let status = try site.ask(.get, "/inApps/v1/notifications/test/\(token)")
            return ServedStoreTests.json(status)?["sendAttempts"]?.elements?.compactMap {
                $0["sendAttemptResult"]?.text
            } ?? []
        }
        #expect(try results() == ["UNSUCCESSFUL_HTTP_RESPONSE_CODE"])
        webhook.status.store(202, ordering: .relaxed)
        #expect(try results().count == 1)
        site.local.server.advance(byMilliseconds: 3_600_000)
        #expect(try results() == ["UNSUCCESSFUL_HTTP_RESPONSE_CODE", "SUCCESS"])
    }

    @Test func failuresHaveApplesNames() throws {
        let nobody = try WebhookPoster(HTTPURL("http://127.0.0.1:1/hook"))
        #expect(nobody.post([]) == .socketIssue)
        let site = try ServedStoreTests.Site()
        // It speaks TLS under a certificate that nobody trusts.
        let untrusted = try WebhookPoster(HTTPURL(site.local.baseURL + "/hook"))
        #expect(untrusted.post([]) == .tlsIssue)
        let trusted = try WebhookPoster(
            HTTPURL(site.local.baseURL + "/hook"),
            trustAnchors: .pem(site.local.authorityPEM)
        )
        #expect(trusted.post([]) == .unsuccessfulCode)
    }
}

/// A thread of one's own, to be waited for.
final class Thread: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () -> Void) {
        DispatchQueue(label: "test").async { [semaphore] in
            body()
            semaphore.signal()
        }
    }

    func join() { semaphore.wait() }
}
