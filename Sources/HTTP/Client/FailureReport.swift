internal import CCurl

/// What the library said of a request that failed, made into an error.
struct Report {
    let code: CURLcode
    let detail: String
    let url: HTTPURL
    let halt: Transfer.Halt?
    let hasBegun: Bool
    let verifyResult: Int
    let hasProxy: Bool
    let waitedNanoseconds: UInt64
    let wholeNanoseconds: UInt64

    var error: HTTPClientError {
        let (code, text) = meaning
        return HTTPClientError(
            code: code,
            message: "\(url.origin): \(text)",
            mayHaveArrived: hasBegun
        )
    }

    private var meaning: (HTTPClientError.Code, String) {
        switch halt {
        case .tooLarge: return tooLarge
        case .stalled: return timeout(.stall)
        case .stopped: return (.stopped, "the client was stopped")
        case nil: break
        }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            return (
                .unresolved,
                "the name \(url.host) has no address: check its spelling, and this machine's DNS"
            )
        case CURLE_COULDNT_RESOLVE_PROXY:
            return (.proxy, "the proxy's name has no address: check the proxy setting")
        case CURLE_COULDNT_CONNECT:
            return hasProxy
                ? (.proxy, "the proxy takes no connection\(reason)")
                : (
                    .refused,
                    "no connection\(reason): is the service running, and does a firewall let this through?"
                )
        case CURLE_OPERATION_TIMEDOUT:
            // Both of the library's limits give this code.
            if waitedNanoseconds + 2_000_000 >= wholeNanoseconds { return timeout(.whole) }
            return timeout(hasBegun ? .whole : .connect)
        case CURLE_FILESIZE_EXCEEDED:
            return tooLarge
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
            return certificate
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE:
            return (
                .configuration,
                "the certificates to trust cannot be read: install ca-certificates, or check the file"
            )
        case CURLE_SSL_CONNECT_ERROR:
            return (
                .tls(.handshake),
                "no TLS session\(reason): the port must speak TLS 1.2 or later"
            )
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR:
            return (.cutOff, "the connection ended before the answer was whole\(reason)")
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING,
            CURLE_HTTP2:
            return (.malformed, "what came is not HTTP\(reason)")
        case CURLE_PROXY:
            return (.proxy, "the proxy does not let the request through\(reason)")
        default:
            return (.library, "libcurl failed (\(code.rawValue))\(reason)")
        }
    }

    private var tooLarge: (HTTPClientError.Code, String) {
        (.tooLarge, "the answer is larger than what is taken")
    }

    private func timeout(_ phase: HTTPClientError.Phase) -> (HTTPClientError.Code, String) {
        switch phase {
        case .connect:
            (
                .timeout(phase),
                "no connection in time: is the address right, and does a firewall drop this?"
            )
        case .stall: (.timeout(phase), "the server was silent for too long")
        case .whole: (.timeout(phase), "the answer was not whole in time")
        }
    }

    private var certificate: (HTTPClientError.Code, String) {
        // Names of OpenSSL's x509_vfy.h.
        let notYetValid = 9
        let hasExpired = 10
        // The name is compared by libcurl itself, which leaves OpenSSL's result as it was before.
        let unspecified = 0...1
        switch verifyResult {
        case unspecified:
            return (
                .tls(.wrongName),
                "the certificate is not for \(url.host): ask by a name that it has"
            )
        case hasExpired:
            return (.tls(.expired), "the certificate has expired: it must be renewed")
        case notYetValid:
            return (
                .tls(.notYetValid),
                "the certificate is not valid yet: check the clock of both machines"
            )
        default:
            return (
                .tls(.untrusted),
                """
                the certificate is not trusted\(reason): the server must send its whole chain, and \
                the authority at its end must be among those trusted here
                """
            )
        }
    }

    /// The library's own words, short and in one line.
    private var reason: String {
        let text = String(
            String.UnicodeScalarView(detail.unicodeScalars.filter { $0.value >= 0x20 }.prefix(160))
        )
        return text.isEmpty ? "" : " (\(text))"
    }
}
