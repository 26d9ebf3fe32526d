package import HTTP
package import Ledger

/// Asks a service from outside, as whoever delivers to it or asks it would.
package struct EndpointCheck {
    /// How many days before its end a certificate is worth a warning.
    static let certificateNoticeDays: Int64 = 14

    private let client: HTTPClient
    private let now: @Sendable () -> Timestamp

    /// Makes a check.
    ///
    /// - Parameters:
    ///   - client: knows which certificates to trust.
    ///   - now: our clock.
    package init(client: HTTPClient, now: @escaping @Sendable () -> Timestamp) {
        self.client = client
        self.now = now
    }

    /// Looks at the address that Apple delivers to.
    ///
    /// - Parameter base: what stands before `/v1/notifications`.
    /// - Returns: whether it answers with a good certificate, and whether deliveries get through.
    package func publicAddress(_ base: HTTPURL) -> [Diagnosis] {
        guard base.isSecure else {
            return [
                Diagnosis(
                    "public",
                    .fail,
                    "\(base.origin) is not HTTPS",
                    remedy:
                        "Apple delivers over HTTPS only: put a proxy with TLS in front, or give "
                        + "serve a certificate"
                )
            ]
        }
        var result = [alive(base, "public")]
        guard result[0].level != .fail else { return result }
        // Only POST is taken there, and nothing is delivered: 405 means that the way is open.
        result.append(
            ask(base, Service.notificationsPath, "public_path", expecting: 405) { status in
                "\(base.origin) answers \(status) where notifications are delivered"
            }
        )
        return result
    }

    /// Looks at a running service, by whatever address.
    package func service(_ base: HTTPURL) -> [Diagnosis] {
        [
            alive(base, "endpoint"),
            // Our own proxy keeps it from the world.
            ask(base, "/readyz", "ready", expecting: 200, isHiddenByProxies: true) {
                "\(base.origin)/readyz answers \($0)"
            },
        ]
    }

    private func alive(_ base: HTTPURL, _ name: String) -> Diagnosis {
        ask(base, "/healthz", name, expecting: 200) { "\(base.origin)/healthz answers \($0)" }
    }

    private func ask(
        _ base: HTTPURL,
        _ path: String,
        _ name: String,
        expecting wanted: Int,
        isHiddenByProxies: Bool = false,
        _ finding: (Int) -> String
    ) -> Diagnosis {
        do throws(HTTPClientError) {
            var text = base.text
            while text.hasSuffix("/") { text.removeLast() }
            let answer = try client.send(HTTPClientRequest(.get, try HTTPURL(text + path)))
            if isHiddenByProxies, answer.status == 404 {
                return Diagnosis(
                    name,
                    .warn,
                    finding(404) + ", as where a proxy hides it",
                    remedy: "ask the service itself, such as --url http://127.0.0.1:8080"
                )
            }
            guard answer.status == wanted else {
                return Diagnosis(
                    name,
                    .fail,
                    finding(answer.status),
                    remedy: (300...399).contains(answer.status)
                        ? "it sends elsewhere: give the address that answers by itself"
                        : "does the address lead to subledger serve? Its log, and the proxy's, say why"
                )
            }
            return certificate(answer.certificateEnds, name, finding(answer.status))
        } catch {
            return Diagnosis(name, .fail, error.message, remedy: Self.remedy(error.code))
        }
    }

    private func certificate(_ ends: Int64?, _ name: String, _ finding: String) -> Diagnosis {
        guard let ends else { return Diagnosis(name, .ok, finding) }
        let end = Timestamp(milliseconds: ends * 1000)
        let days = (ends - now().milliseconds / 1000) / 86_400
        guard days >= Self.certificateNoticeDays else {
            return Diagnosis(
                name,
                .warn,
                "\(finding), but its certificate ends in \(days) days (\(end))",
                remedy: "renew it: with an expired one Apple delivers nothing"
            )
        }
        return Diagnosis(name, .ok, "\(finding), its certificate is good until \(end)")
    }

    private static func remedy(_ code: HTTPClientError.Code) -> String {
        switch code {
        case .tls: "with such a certificate Apple delivers nothing"
        case .unresolved: "the name must be known to the world's DNS"
        default: "is `subledger serve` running there, and its proxy?"
        }
    }
}
