import HTTP
import Testing

@Suite struct ConnectionLimitTests {
    /// Opens connections one after the other and counts those that are served.
    func served(_ test: ServerUnderTest, of count: Int) throws -> [TestClient] {
        try (0..<count).compactMap { _ in
            let client = try test.client()
            client.request("GET /hello HTTP/1.1", "Host: t")
            return (try? client.reply()) == nil ? nil : client
        }
    }

    @Test func connectionsAboveTheLimitAreClosedAtOnce() throws {
        let test = try ServerUnderTest { $0.connectionLimit = 8 }
        var clients = try served(test, of: 12)
        #expect(clients.count == 8)
        #expect(test.server.statistics.refusals == [.connectionLimit: 4])
        #expect(test.server.statistics.connectionsOpen == 8)
        // A place that becomes free is given away again.
        clients.removeLast(3)
        try test.wait("three gone") { $0.server.statistics.connectionsOpen == 5 }
        #expect(try served(test, of: 5).count == 3)
    }

    @Test func oneAddressHasALimitOfItsOwn() throws {
        let test = try ServerUnderTest { $0.addressConnectionLimit = 5 }
        let clients = try served(test, of: 9)
        #expect(clients.count == 5)
        #expect(test.server.statistics.refusals == [.addressLimit: 4])
    }

    @Test func aProxyIsExempt() throws {
        let test = try ServerUnderTest {
            $0.addressConnectionLimit = 2
            $0.addressLimitExemptions = ["127.0.0.0/8"].compactMap { AddressRange($0) }
        }
        #expect(try served(test, of: 9).count == 9)
    }

    @Test(arguments: [0, -1, 1 << 30])
    func aLimitThatMakesNoSenseIsRefused(_ limit: Int) throws {
        let error = #expect(throws: HTTPError.self) {
            _ = try ServerUnderTest { $0.connectionLimit = limit }
        }
        #expect(error?.code == .configuration)
    }
}
