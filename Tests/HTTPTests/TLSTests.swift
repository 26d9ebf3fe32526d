import Glibc
import HTTP
import Testing

@Suite struct TLSTests {
    /// A folder with a self-signed certificate and its key, and a key that is another's.
    final class Certificates {
        let folder: String

        init() throws {
            var template = Array(
                ("/tmp/subledger-tls-" + String(repeating: "X", count: 6)).utf8CString
            )
            guard unsafe mkdtemp(&template) != nil else {
                throw TestClient.Failure(message: "no folder: \(errno)")
            }
            folder = String(decoding: template.dropLast().map(UInt8.init), as: UTF8.self)
            for name in ["own", "other"] {
                let made = shell(
                    """
                    cd \(folder) && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
                    -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                    -keyout \(name).key -out \(name).pem 2>/dev/null
                    """
                )
                guard made == 0 else { throw TestClient.Failure(message: "no certificate") }
            }
        }

        deinit { _ = shell("rm -r \(folder)") }

        func identity(_ certificate: String, _ key: String) throws(HTTPError) -> TLSIdentity {
            try TLSIdentity(
                certificateFile: "\(folder)/\(certificate)",
                keyFile: "\(folder)/\(key)"
            )
        }

        /// What an independent client gets; nil where there is no session.
        func ask(_ port: UInt16, _ path: String, _ options: String = "") -> String? {
            let status = shell(
                """
                cd \(folder) && printf 'GET \(path) HTTP/1.1\\r\\nHost: localhost\\r\\n\
                Connection: close\\r\\n\\r\\n' | timeout 20 openssl s_client -quiet \
                -CAfile own.pem -verify_return_error -verify_hostname localhost \(options) \
                -connect 127.0.0.1:\(port) > answer 2>/dev/null
                """
            )
            guard status == 0 else { return nil }
            let file = unsafe open("\(folder)/answer", O_RDONLY)
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = unsafe read(file, &bytes, bytes.count)
            return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
        }
    }

    @Test func theServerDoesTLSWithItsOwnCertificate() throws {
        let certificates = try Certificates()
        let identity = try certificates.identity("own.pem", "own.key")
        let streams = StreamTests.Streams()
        let test = try ServerUnderTest(routes: [
            streams.route("/large", count: 500_000),
            Route(.get, "/soon") { _ in
                let pending = PendingResponse()
                LaterAnswerTests.soon { pending.complete(LaterAnswerTests.ok) }
                return .later(pending)
            },
        ]) { $0.tls = identity }
        let port = test.server.port
        let plain = try #require(certificates.ask(port, "/hello"))
        #expect(plain.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(plain.hasSuffix("\r\n\r\nhi"))
        #expect(try #require(certificates.ask(port, "/hello", "-tls1_2")).hasSuffix("hi"))
        #expect(try #require(certificates.ask(port, "/hello", "-tls1_3")).hasSuffix("hi"))
        #expect(try #require(certificates.ask(port, "/soon")).hasSuffix("ok"))
        #expect(try #require(certificates.ask(port, "/large")).utf8.count > 500_000)
        let old = certificates.ask(port, "/hello", "-tls1_1 -cipher DEFAULT@SECLEVEL=0")
        #expect(old == nil)
        #expect(test.server.stop(within: .seconds(5)) == .drained)
    }

    /// A certificate with another one's key is refused before anything listens with it, in words that
    /// help.
    @Test func whetherBothBelongTogetherIsSeenBeforehand() throws {
        let certificates = try Certificates()
        try certificates.identity("own.pem", "own.key").check()
        let wrong = try certificates.identity("own.pem", "other.key")
        let error = #expect(throws: HTTPError.self) { try wrong.check() }
        #expect(error?.code == .certificate)
        #expect(error?.message.contains("the key must be the certificate's") == true)
    }

    @Test func whoDoesNotShakeHandsIsCut() throws {
        let certificates = try Certificates()
        let identity = try certificates.identity("own.pem", "own.key")
        let test = try ServerUnderTest {
            $0.tls = identity
            $0.requestDeadline = .milliseconds(400)
        }
        let plain = try test.client()
        plain.request("GET /hello HTTP/1.1", "Host: t")
        #expect(plain.ends())
        let silent = try test.client()
        #expect(silent.isClosed())
        let slow = try test.client()
        // The beginning of a handshake's record, whose rest never comes.
        slow.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01])
        #expect(slow.ends())
        try test.wait("closed") { $0.server.statistics.connectionsOpen == 0 }
    }

    @Test func aSuccessorServesANewCertificateAndNobodyIsTurnedAway() throws {
        let certificates = try Certificates()
        let first = try certificates.identity("own.pem", "own.key")
        let test = try ServerUnderTest { $0.tls = first }
        let port = test.server.port
        #expect(try #require(certificates.ask(port, "/hello")).hasSuffix("hi"))
        // A key that does not fit changes nothing.
        let wrong = try certificates.identity("own.pem", "other.key")
        let error = #expect(throws: HTTPError.self) {
            _ = try HTTPServer(succeeding: test.server, tls: wrong)
        }
        #expect(error?.code == .certificate)
        #expect(try #require(certificates.ask(port, "/hello")).hasSuffix("hi"))

        let second = try certificates.identity("other.pem", "other.key")
        let next = try HTTPServer(succeeding: test.server, tls: second)
        #expect(next.port == port)
        #expect(test.server.stop(within: .seconds(5)) == .drained)
        // The former certificate is gone, the new one there; each ask is a new connection.
        #expect(certificates.ask(port, "/hello") == nil)
        for _ in 0..<3 {
            let answer = certificates.ask(port, "/hello", "-CAfile other.pem")
            #expect(try #require(answer).hasSuffix("hi"))
        }
        #expect(next.statistics.connectionsAccepted >= 6)
        #expect(throws: HTTPError.self) {
            _ = try HTTPServer(succeeding: test.server, tls: second)
        }
        #expect(next.stop(within: .seconds(5)) == .drained)
    }

    @Test func aCertificateThatDoesNotFitStopsTheStart() throws {
        let certificates = try Certificates()
        let wrong = try certificates.identity("own.pem", "other.key")
        let error = #expect(throws: HTTPError.self) {
            _ = try ServerUnderTest { $0.tls = wrong }
        }
        #expect(error?.code == .certificate)
        #expect(error?.message.contains("cannot be used") == true)
        for (certificate, key) in [("none.pem", "own.key"), ("own.pem", "answer")] {
            let error = #expect(throws: HTTPError.self) {
                _ = try certificates.identity(certificate, key)
            }
            #expect(error?.code == .certificate)
        }
    }
}

/// Runs a command and gives its status.
private func shell(_ command: String) -> Int32 {
    let status = unsafe system(command)
    return status & 0x7F == 0 ? status >> 8 & 0xFF : -1
}
