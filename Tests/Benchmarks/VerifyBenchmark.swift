internal import AppStore
internal import AppStoreSimulator
internal import Crypto
internal import Glibc
internal import Ledger

/// How fast signed texts are verified, against what OpenSSL says it can do in the same run.
public enum VerifyBenchmark {
    /// How often each figure is taken; the best counts, on both sides.
    private static let rounds = 3

    /// Measures verification for about so many seconds each, on one core.
    ///
    /// Without the `openssl` command the figures stand without a ratio.
    public static func run(seconds: Double = 1) -> [BenchmarkLine] {
        let sample = Sample()
        var signature = 0.0
        var notification = 0.0
        var speed: Double?
        for _ in 0..<rounds {
            // Close together, since the machine's speed may change between them.
            signature = max(signature, sample.signatureRate(seconds: seconds))
            if let measured = opensslVerifyRate(seconds: max(1, Int(seconds))) {
                speed = max(speed ?? 0, measured)
            }
            notification = max(notification, sample.notificationRate(seconds: seconds))
        }
        let perSignature = "openssl speed"
        let perNotification = "openssl speed for 3 signatures"
        var lines = [
            BenchmarkLine(
                "one signature of \(sample.messageCount) bytes",
                signature,
                "per second and core",
                ratio: speed.map { signature / $0 },
                of: perSignature
            ),
            BenchmarkLine(
                "one notification of \(sample.text.count) bytes",
                notification,
                "per second and core",
                ratio: speed.map { notification * 3 / $0 },
                of: perNotification
            ),
            BenchmarkLine(
                "one notification, chain never seen",
                sample.coldRate(seconds: seconds / 2),
                "per second and core"
            ),
            BenchmarkLine(
                "reading a transaction's JSON",
                1e6 / sample.scanRate(seconds: seconds / 4),
                "µs"
            ),
        ]
        if let speed {
            lines.insert(BenchmarkLine("openssl speed ecdsap256", speed, "per second"), at: 0)
        }
        return lines
    }

    /// What `openssl speed` says of verifying; nil where it cannot be run.
    private static func opensslVerifyRate(seconds: Int) -> Double? {
        let command = "openssl speed -seconds \(seconds) ecdsap256 2>/dev/null"
        guard let pipe = unsafe popen(command, "r") else { return nil }
        defer { unsafe pclose(pipe) }
        var output: [UInt8] = []
        while case let byte = unsafe fgetc(pipe), byte != EOF {
            output.append(UInt8(truncatingIfNeeded: byte))
        }
        // The last line ends in signatures and verifications a second.
        let text = String(decoding: output, as: UTF8.self)
        guard let line = text.split(separator: "\n").last(where: { $0.contains("ecdsa") }) else {
            return nil
        }
        return line.split(separator: " ").last.flatMap { Double($0) }
    }

    /// A notification of a test authority and a verifier that trusts it.
    private struct Sample {
        let text: [UInt8]
        let transaction: [UInt8]
        let anchors: TrustAnchors
        let verifier: Verifier
        let key: PublicKey
        let jws: CompactJWS
        let now: Timestamp

        var messageCount: Int { jws.signingInput.count }

        init() {
            let start: Int64 = 1_735_689_600_000
            let authority = TestCertificateAuthority(
                seed: 1,
                from: start,
                until: start + 86_400_000
            )
            let chain = Chain(
                originalTransactionID: "2000000900000001",
                originalPurchaseDate: start
            )
            text = NoticeSigner(authority: authority).sign(.initialBuy(of: chain), of: chain)
            now = Timestamp(milliseconds: start + 3_600_000)
            var anchors = TrustAnchors()
            do throws(AppStoreError) { try anchors.add(authority.rootDER, name: "root") } catch {
                preconditionFailure("the test root is no anchor: \(error)")
            }
            self.anchors = anchors
            verifier = Verifier(anchors: anchors, apps: nil)
            guard case .trusted(let document) = verifier.verify(text, now: now),
                let nested = document.nested.first, let jws = try? CompactJWS(nested.received),
                let leaf = try? Certificate(der: authority.leaves[0].certificate)
            else { preconditionFailure("the sample is not trusted") }
            transaction = jws.payload
            self.jws = jws
            key = leaf.publicKey
        }

        func signatureRate(seconds: Double) -> Double {
            BenchmarkClock.rate(seconds: seconds) {
                let isValid = key.isValidES256(
                    signature: jws.signature,
                    message: jws.signingInput
                )
                precondition(isValid, "the sample is not trusted")
            }
        }

        func notificationRate(seconds: Double) -> Double {
            BenchmarkClock.rate(seconds: seconds) { verify(verifier) }
        }

        func coldRate(seconds: Double) -> Double {
            BenchmarkClock.rate(seconds: seconds) { verify(Verifier(anchors: anchors, apps: nil)) }
        }

        func scanRate(seconds: Double) -> Double {
            BenchmarkClock.rate(seconds: seconds) {
                precondition((try? JSONDocument(transaction)) != nil, "the sample is no JSON")
            }
        }

        private func verify(_ verifier: Verifier) {
            guard case .trusted = verifier.verify(text, now: now) else {
                preconditionFailure("the sample is not trusted")
            }
        }
    }
}
