import HTTP
import Testing

@Suite struct AddressTests {
    @Test(arguments: [
        ("17.0.0.1", "17.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::1", "::1"), ("2620:149:0:0::1", "2620:149::1"), ("::ffff:17.1.2.3", "17.1.2.3"),
    ])
    func anAddressIsRead(_ text: String, _ shown: String) {
        #expect(IPAddress(text)?.description == shown)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.-4", "1.2.3. 4", "1.2.3.4 ",
        "0x1.2.3.4", "1..3.4", "fe80::1%eth0", ":", "1::2::3", "g::1", "12345::", "localhost",
        "1.2.3.٤",
    ])
    func textThatIsNoAddressIsRefused(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: [
        ("17.0.0.0/8", "17.255.255.255", true), ("17.0.0.0/8", "18.0.0.0", false),
        ("0.0.0.0/0", "9.9.9.9", true), ("0.0.0.0/0", "::1", false),
        ("10.0.0.0/31", "10.0.0.1", true), ("10.0.0.0/31", "10.0.0.2", false),
        ("10.0.0.7", "10.0.0.7", true), ("10.0.0.7/32", "10.0.0.6", false),
        ("17.0.0.0/8", "::ffff:17.1.1.1", true), ("::/0", "2620:149::1", true),
        ("2620:149::/32", "2620:149:ffff::1", true), ("2620:149::/32", "2620:14a::1", false),
        ("::/0", "1.2.3.4", false), ("fe80::/10", "febf::1", true), ("fe80::/10", "fec0::", false),
    ])
    func aNetworkHasItsAddresses(_ network: String, _ address: String, _ isIn: Bool) throws {
        let range = try #require(AddressRange(network))
        #expect(range.contains(try #require(IPAddress(address))) == isIn)
    }

    @Test(arguments: [
        "17.0.0.1/8", "17.0.0.0/33", "17.0.0.0/", "17.0.0.0/-1", "17.0.0.0/+8", "/8", "::1/64",
        "::/129", "17/8", "17.0.0.0/8/8", "17.0.0.0/0008",
    ])
    func textThatIsNoNetworkIsRefused(_ text: String) {
        #expect(AddressRange(text) == nil)
    }

    static let proxies = ["10.0.0.0/8", "fd00::/8"].compactMap { AddressRange($0) }

    @Test(arguments: [
        // Without a trusted proxy the header is never looked at.
        ("9.9.9.9", ["17.0.0.1"], "9.9.9.9"),
        ("10.0.0.1", ["17.0.0.1"], "17.0.0.1"),
        // What the client itself put in front is not believed.
        ("10.0.0.1", ["17.0.0.1, 6.6.6.6"], "6.6.6.6"),
        ("10.0.0.1", ["17.0.0.1, 6.6.6.6", "10.0.0.2"], "6.6.6.6"),
        ("10.0.0.1", ["17.0.0.1 , 10.0.0.3,10.0.0.2"], "17.0.0.1"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["17.0.0.1:4711"], "17.0.0.1"),
        ("fd00::1", ["[2620:149::1]:443"], "2620:149::1"),
        ("fd00::1", ["[2620:149::1]"], "2620:149::1"),
        ("fd00::1", ["2620:149::1"], "2620:149::1"),
        // An entry that cannot be read ends the walk where it is still sure.
        ("10.0.0.1", ["17.0.0.1, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["17.0.0.1, "], "10.0.0.1"),
        ("10.0.0.1", ["17.0.0.1:99999"], "10.0.0.1"),
    ])
    func theClientIsTheFirstThatIsNoTrustedProxy(
        _ peer: String,
        _ values: [String],
        _ client: String
    ) throws {
        let found = ForwardedFor.client(
            peer: try #require(IPAddress(peer)),
            values: values,
            trusted: Self.proxies
        )
        #expect(found.description == client)
    }
}
