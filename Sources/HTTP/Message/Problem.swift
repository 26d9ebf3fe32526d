/// An error's answer as RFC 9457 has it, `application/problem+json`, with a stable name.
public struct Problem: Hashable, Sendable {
    /// The status.
    public var status: Int

    /// The stable name, in snake case, which programs may compare.
    public var reason: String

    /// What the name means, the same in every such answer.
    public var title: String

    /// What is particular to this one; never holds what must not be shown to the client.
    public var detail: String?

    /// Numbers that a program needs to go on, by name: extension members of RFC 9457.
    public var numbers: [String: Int64] = [:]

    /// Makes a problem.
    public init(status: Int, reason: String, title: String, detail: String? = nil) {
        self.status = status
        self.reason = reason
        self.title = title
        self.detail = detail
    }

    /// The problem as JSON; there is no document behind it, so the type is `about:blank`.
    public var json: String {
        var text = #"{"type":"about:blank","title":\#(JSONText.quoted(title))"#
        text += #","status":\#(status),"reason":\#(JSONText.quoted(reason))"#
        if let detail { text += #","detail":\#(JSONText.quoted(detail))"# }
        for (name, number) in numbers.sorted(by: { $0.key < $1.key }) {
            text += ",\(JSONText.quoted(name)):\(number)"
        }
        return text + "}"
    }
}

extension HTTPResponse {
    /// The answer that a problem makes, to which headers may be added.
    public static func problem(_ problem: Problem) -> HTTPResponse {
        HTTPResponse(
            status: problem.status,
            contentType: "application/problem+json",
            headers: ["Cache-Control": "no-store"],
            body: Array(problem.json.utf8)
        )
    }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    /// Fields from a literal, in its order.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init()
        for (name, value) in elements { add(name, value) }
    }
}

/// Text as JSON.
public enum JSONText {
    /// The text in quotes, escaped where JSON demands it.
    public static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        bytes.reserveCapacity(text.utf8.count + 2)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes += Array(#"\""#.utf8)
            case UInt8(ascii: "\\"): bytes += Array(#"\\"#.utf8)
            case 0x0A: bytes += Array(#"\n"#.utf8)
            case 0x0D: bytes += Array(#"\r"#.utf8)
            case 0x09: bytes += Array(#"\t"#.utf8)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                bytes += Array(#"\u00"#.utf8)
                bytes += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }
}
