/// Who a request really came from, where proxies stand in front.
public enum ForwardedFor {
    /// Goes back from the connection's peer along `X-Forwarded-For`, as far as proxies are trusted.
    ///
    /// Each proxy appends the address it was called from. So the header is read from its end, and
    /// the first address that is not a trusted proxy is the client: all before it may be invented.
    /// An entry that cannot be read ends the walk at the proxy that wrote it, which is on no
    /// client's allow-list.
    ///
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - values: every `X-Forwarded-For` of the request, in order.
    ///   - trusted: the networks of the proxies; with none the header is never looked at.
    /// - Returns: the client's address as far as it is sure.
    public static func client(
        peer: IPAddress,
        values: [String],
        trusted: [AddressRange]
    ) -> IPAddress {
        var client = peer
        var entries = values.flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false)
        }[...]
        while trusted.contains(address: client), let entry = entries.popLast() {
            guard let address = address(of: entry) else { return client }
            client = address
        }
        return client
    }

    /// Some proxies write the port too: `17.1.2.3:443`, `[2620:149::1]:443`.
    private static func address(of entry: Substring) -> IPAddress? {
        let blanks: Set<Character> = [" ", "\t"]
        var text = entry.drop { blanks.contains($0) }
        while let last = text.last, blanks.contains(last) { text.removeLast() }
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]"), isPort(text[end...].dropFirst()) else {
                return nil
            }
            return IPAddress(text[text.startIndex..<end].dropFirst())
        }
        if let colon = text.firstIndex(of: ":"), text.contains("."), isPort(text[colon...]) {
            return IPAddress(text[..<colon])
        }
        return IPAddress(text)
    }

    private static func isPort(_ text: Substring) -> Bool {
        if text.isEmpty { return true }
        return text.first == ":" && UInt16(text.dropFirst()) != nil
    }
}
