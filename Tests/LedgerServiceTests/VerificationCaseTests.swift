import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Glibc
import HTTP
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Other people's public reports of class B, each with the outcome that is right: verification.
@Suite struct VerificationCaseTests {
    private static func problems(_ app: String) -> [String] {
        let text = "{\"apps\": [{\"bundle_id\": \"com.example.app\", \(app)}]}"
        do throws(ConfigurationError) {
            _ = try Configuration(bytes: Array(text.utf8), path: "subledger.json")
            return []
        } catch {
            return error.problems.map(\.field)
        }
    }

    @Test func b01ProductionWithoutTheAppsNumberIsNoConfiguration() {
        for number in ["null", "\"TEAM1.com.example.app\"", "\"123456789\""] {
            let app = "\"environments\": [\"Production\"], \"app_apple_id\": \(number)"
            #expect(Self.problems(app) == ["apps[0].app_apple_id"], "\(number)")
        }
        #expect(Self.problems("\"environments\": [\"Sandbox\"]").isEmpty)
        #expect(Self.problems("\"environments\": [\"Sandbox\"], \"app_apple_id\": 5").isEmpty)
        #expect(Self.problems("\"app_apple_id\": 123456789").isEmpty)
    }

    @Test func b02ARootIsPEMOrDERAndAnythingElseStopsTheStart() throws {
        let sample = try IngestSample()
        let folder = try ScratchFolder()
        let authority = sample.signer.authority
        for (name, bytes) in [
            ("root.pem", Array(authority.rootPEM.utf8)), ("root.der", authority.rootDER),
        ] {
            var acceptance = Acceptance()
            try acceptance.addAnchor(folder.file(name, bytes))
            let verifier = Verifier(anchors: acceptance.anchors, apps: [app()])
            let bench = try DeliveryBench(verifier: verifier)
            #expect(bench.deliver(sample.purchase(1))?.reason == "stored", "\(name)")
        }
        for (name, text) in [("error.html", "<html>404</html>"), ("empty.cer", "")] {
            var acceptance = Acceptance()
            let path = try folder.file(name, Array(text.utf8))
            let error = #expect(throws: AppStoreError.self) { try acceptance.addAnchor(path) }
            #expect(error?.message.contains(name) == true)
        }
        // No root is no reason to believe everybody.
        let bench = try DeliveryBench(verifier: Verifier(anchors: TrustAnchors(), apps: [app()]))
        #expect(bench.deliver(sample.purchase(1))?.reason == "untrusted_root")
        #expect(try bench.count("ledger.event") == 0)
    }

    @Test func b03AnyValidRootWillDoAndAnExpiredOneIsAWarning() throws {
        let sample = try IngestSample()
        let old = TestCertificateAuthority(seed: 5, from: 300_000_000_000, until: 310_000_000_000)
        let new = TestCertificateAuthority(
            seed: 6,
            from: 1_690_000_000_000,
            until: 1_790_000_000_000
        )
        var anchors = TrustAnchors()
        try anchors.add(old.rootDER, name: "old.cer")
        try anchors.add(sample.signer.authority.rootDER, name: "root.cer")
        let chain = sample.chain(2)
        let other = NoticeSigner(authority: new)
            .sign(.initialBuy(of: chain, uuid: sample.uuid(2)), of: chain)
        let before = try DeliveryBench(verifier: Verifier(anchors: anchors, apps: [app()]))
        #expect(before.deliver(sample.purchase(1))?.status == 200)
        #expect(before.deliver(other)?.reason == "untrusted_root")
        #expect(
            anchors.warnings(now: IngestSample.now).filter { $0.hasPrefix("old.cer") }
                == ["old.cer: the root certificate has expired"]
        )
        // A new root is a line of the configuration and no change of the program.
        try anchors.add(new.rootDER, name: "new.cer")
        let after = try DeliveryBench(verifier: Verifier(anchors: anchors, apps: [app()]))
        #expect(after.deliver(sample.purchase(1))?.status == 200)
        #expect(after.deliver(other)?.status == 200)
    }

    @Test func b04AResponderThatIsAwayIsATemporaryMatterAndNoForgery() throws {
        let state = Mutex<(authority: OCSPAuthority?, isAway: Bool)>((nil, true))
        let responder = try HTTPServer(
            configuration: HTTPServerConfiguration(),
            router: Router(
                OCSPAuthority.Issuer.allCases.map { issuer in
                    Route(.post, "/\(issuer.rawValue)", bodyLimitBytes: 4096) { request in
                        let (authority, isAway) = state.withLock { $0 }
                        // Longer than the service waits; the answer reaches nobody.
                        if isAway { sleepSeconds(2) }
                        guard let authority, !isAway,
                            let answer = try? authority.answer(request.body, by: issuer)
                        else { return .answer(HTTPResponse(status: 503)) }
                        return .answer(HTTPResponse(status: 200, body: answer))
                    }
                }
            )
        )
        let authority = try OCSPAuthority(
            url: "http://127.0.0.1:\(responder.port)",
            leafMarker: TestCertificateAuthority.leafMarkerOID,
            intermediateMarker: TestCertificateAuthority.intermediateMarkerOID
        )
        state.withLock { $0.authority = authority }
        let sample = try IngestSample()
        var anchors = TrustAnchors()
        try anchors.add(authority.chain[2], name: "ocsp root.cer")
        let now = Timestamp(milliseconds: Int64(time(nil)) * 1000)
        let text = PayloadSigner(key: authority.key, chain: authority.chain).sign([
            "notificationType": "TEST",
            "notificationUUID": .string(sample.uuid(1)), "version": "2.0",
            "signedDate": .integer(now.milliseconds),
            "data": [
                "bundleId": .string(sample.chain(1).bundleID), "environment": "Sandbox",
            ],
        ])
        func bench() throws -> DeliveryBench {
            try DeliveryBench(
                verifier: Verifier(
                    anchors: anchors,
                    apps: [app()],
                    revocation: try OCSPTransport(timeout: .seconds(1))
                ),
                sample: sample,
                now: now
            )
        }
        let away = try bench()
        let answer = away.deliver(text)
        #expect(answer?.status == 503)
        #expect(answer?.reason == "revocation_unknown")
        #expect(try away.count("ledger.event where kind = 'notification'") == 0)
        #expect(try away.count("ledger.quarantine") == 0)
        // Back again, the same delivery is stored. (The ten seconds of a failure are not waited.)
        state.withLock { $0.isAway = false }
        let back = try bench()
        #expect(back.deliver(text)?.status == 200)
        #expect(try back.count("ledger.event where kind = 'notification'") == 1)
        responder.stop(within: .zero)
    }

    @Test func b05ASandboxNoticeIsStoredAsSuchOrRefusedByName() throws {
        let sample = try IngestSample()
        let notice = sample.purchase(1)
        var anchors = TrustAnchors()
        try anchors.add(sample.signer.authority.rootDER, name: "root.cer")
        let production = app([.production], appAppleID: 7)
        let closed = try DeliveryBench(verifier: Verifier(anchors: anchors, apps: [production]))
        let refused = closed.deliver(notice)
        #expect(refused?.status == 400)
        #expect(refused?.reason == "environment")
        #expect(closed.webhook.measures.value(of: "environment") == 1)
        #expect(try closed.count("ledger.event") == 0)

        let both = app([.production, .sandbox], appAppleID: 7)
        let open = try DeliveryBench(verifier: Verifier(anchors: anchors, apps: [both]))
        #expect(open.deliver(notice)?.reason == "stored")
        #expect(
            try open.count(
                """
                ledger.event join ledger.app using (app_id)
                where environment = 'Sandbox'
                """
            ) == 1
        )
        let connection = try open.sample.database.connect()
        try Projector(connection).project()
        // While it is paid it unlocks something in Sandbox and nothing in Production.
        let day = Timestamp(milliseconds: sample.chain(1).originalPurchaseDate + 86_400_000)
        let answers = try EntitlementQuery(at: day).answers(connection)
        #expect(answers.map(\.app.environment) == [.sandbox])
        #expect(answers.map(\.entitled) == [true])
        let unlocked = try connection.query(
            "select count(*) from read_model.entitlement_at($1)",
            [.instant(milliseconds: day.milliseconds)]
        )
        #expect(unlocked.int(0, 0) == 0)
    }

    @Test func b06ANewWordOfApplesIsKeptAndShownByAMetric() throws {
        let bench = try DeliveryBench()
        let sample = bench.sample
        let future = sample.purchase(1) {
            $0["notificationType"] = "FUTURE_TYPE"
            $0["subtype"] = "FUTURE_SUB"
        }
        let chain = sample.chain(2)
        let odd = sample.signer.sign(
            .initialBuy(of: chain, uuid: sample.uuid(2)),
            of: chain,
            changingTransaction: { $0["offerType"] = 9 },
            changingEnvelope: { $0["data"]?["status"] = 42 }
        )
        #expect(bench.deliver(future)?.reason == "stored")
        #expect(bench.deliver(odd)?.reason == "stored")
        #expect(bench.webhook.measures.unrecognised.value == 2)
        #expect(
            try bench.count(
                """
                ledger.evidence_text where payload like '%"FUTURE_TYPE"%'
                    and payload like '%"FUTURE_SUB"%'
                """
            ) == 1
        )
        // The word is passed over, what the transactions say is not.
        let connection = try sample.database.connect()
        try Projector(connection).project()
        let day = Timestamp(milliseconds: chain.originalPurchaseDate + 86_400_000)
        let answers = try EntitlementQuery(at: day).answers(connection)
        #expect(answers.map(\.state) == ["active", "active"])
    }

    @Test(arguments: ["Xcode", "LocalTesting"])
    func b07LocalTestDataIsRefusedByThatNameWhateverIsConfigured(_ environment: String) throws {
        let sample = try IngestSample()
        var anchors = TrustAnchors()
        try anchors.add(sample.signer.authority.rootDER, name: "root.cer")
        let both = app([.production, .sandbox], appAppleID: 7)
        let bench = try DeliveryBench(verifier: Verifier(anchors: anchors, apps: [both]))
        let signer = PayloadSigner(
            key: SigningKey(seed: [3]),
            chain: [sample.signer.authority.leaves[0].certificate]
        )
        let local = signer.sign([
            "notificationType": "SUBSCRIBED", "notificationUUID": .string(sample.uuid(1)),
            "signedDate": 1_700_000_000_000,
            "data": [
                "bundleId": .string(IngestSample.bundleID), "environment": .string(environment),
            ],
        ])
        let trusted = sample.purchase(1) { $0["data"]?["environment"] = .string(environment) }
        for text in [local, trusted] {
            let answer = bench.deliver(text)
            #expect(answer?.status == 400)
            #expect(answer?.reason == "local_test_data")
            #expect(answer?.detail.contains("local test data") == true)
        }
        #expect(try bench.count("ledger.event") == 0)
        #expect(try bench.count("ledger.quarantine") == 0)
    }

    @Test func b08ACorruptTextIsRefusedAndTheNextGoodOneStored() throws {
        let bench = try DeliveryBench()
        let headers = [
            "!", "no JSON", "{}", "{\"alg\":\"ES256\",\"x5c\":{}}", "[]",
            "{\"alg\":\"ES256\",\"x5c\":[1,2,3]}",
            "{\"alg\":\"ES256\",\"x5c\":[\"AAAA\",\"//79\",\"MIIB\"]}",
        ]
        var texts = ["!!.e30.AA", "a.b", "a.b.c.d", "", "..", "."]
        texts += headers.map { "\(Base64URL.encode(Array($0.utf8))).e30.AA" }
        for (number, text) in texts.enumerated() {
            let answer = bench.deliver(Array(text.utf8))
            #expect(answer?.status == 400, "\(text)")
            #expect(bench.deliver(bench.sample.purchase(number))?.status == 200)
        }
        // The same with a real one of which one character of the header is another.
        let good = bench.sample.purchase(99)
        for place in stride(from: 0, to: 400, by: 7) {
            var bad = good
            bad[place] = bad[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(bench.deliver(bad)?.status == 400, "\(place)")
        }
        #expect(bench.deliver(good)?.reason == "stored")
        #expect(try bench.count("ledger.event") == Int64(texts.count) + 1)
    }

    @Test func b09ANestedTextOfAnotherKeyRejectsTheWholeNotice() throws {
        let bench = try DeliveryBench()
        let sample = bench.sample
        let chain = sample.chain(1)
        let notice = Notice.initialBuy(of: chain, uuid: sample.uuid(1))
        let stranger = NoticeSigner(
            authority: TestCertificateAuthority(
                seed: 12,
                from: 1_690_000_000_000,
                until: 1_790_000_000_000
            )
        )
        let at = notice.signedDate
        let transaction = try #require(notice.transaction)
        let renewal = try #require(notice.renewal)
        for (name, payload) in [
            ("signedTransactionInfo", chain.payload(transaction)),
            ("signedRenewalInfo", chain.payload(renewal)),
        ] {
            let forged = sample.purchase(1) {
                $0["data"]?[name] = stranger.authority.signer(at: at).text(payload)
            }
            let asObject = sample.purchase(1) { $0["data"]?[name] = payload }
            let answer = bench.deliver(forged)
            #expect(answer?.status == 400, "\(name)")
            #expect(answer?.reason == "nested", "\(name)")
            // The whole is genuine here, and unreadable: it is kept aside, and nothing follows.
            #expect(bench.deliver(asObject)?.reason == "quarantined", "\(name)")
        }
        #expect(try bench.count("ledger.event") == 0)
        #expect(try bench.count("ledger.quarantine") == 2)
        #expect(bench.deliver(sample.purchase(1))?.reason == "stored")
    }

    private func app(
        _ environments: Set<Environment> = [.sandbox],
        appAppleID: Int64? = nil
    ) -> AcceptedApp {
        AcceptedApp(
            bundleID: IngestSample.bundleID,
            appAppleID: appAppleID,
            environments: environments
        )
    }
}
