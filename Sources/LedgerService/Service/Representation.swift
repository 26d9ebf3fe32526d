internal import Crypto
internal import HTTP

/// In which form an answer is wished.
enum Representation: String, Hashable, Sendable, CaseIterable {
    case json
    case csv

    /// Reads `format`, or else the header `Accept`; JSON where both leave it open.
    init(_ request: HTTPRequest, _ parameters: Parameters) throws(ServiceProblem) {
        if let named = try parameters.word("format", Representation.self) {
            self = named
            return
        }
        let ranges = request.headers.all("Accept").flatMap { $0.split(separator: ",") }
        let csv = Self.quality(ranges, ["text/csv", "text/*", "*/*"])
        let json = Self.quality(ranges, ["application/json", "application/*", "*/*"])
        self = csv > json ? .csv : .json
    }

    /// The weight, in thousandths, of the first of some ranges that is there; most specific first.
    private static func quality(_ ranges: [Substring], _ names: [String]) -> Int {
        let parsed = ranges.map { range in
            range.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        }
        for name in names {
            guard let range = parsed.first(where: { $0.first == name }) else { continue }
            guard let weight = range.dropFirst().first(where: { $0.hasPrefix("q=") }) else {
                return 1000
            }
            return Int((Double(weight.dropFirst(2)).map { min(max($0, 0), 1) } ?? 0) * 1000)
        }
        return 0
    }
}

/// A table as RFC 4180 has it: a line of names, then the rows; null is an empty field.
struct CSVTable: Sendable {
    private var text = ""

    init(_ names: [String]) { add(names) }

    mutating func add(_ fields: [String?]) {
        text += fields.map { Self.quoted($0 ?? "") }.joined(separator: ",") + "\r\n"
    }

    private static func quoted(_ plain: String) -> String {
        let field = isTakenForAFormula(plain) ? "'" + plain : plain
        let mustQuote = field.utf8.contains { byte in
            [UInt8(ascii: ","), UInt8(ascii: "\""), 0x0A, 0x0D].contains(byte)
        }
        return mustQuote ? "\"" + field.replacing("\"", with: "\"\"") + "\"" : field
    }

    /// Whether a spreadsheet would calculate the field, or could not tell that it was marked.
    ///
    /// Such a field gets an apostrophe, with which a spreadsheet shows it as text. One that begins
    /// with an apostrophe gets another, so that taking one away gives back every field. A plain
    /// number is left alone: it is what it says.
    private static func isTakenForAFormula(_ field: String) -> Bool {
        guard let first = field.utf8.first,
            "=+-@\t\r\n'".utf8.contains(first)
        else { return false }
        return !isNumber(field)
    }

    private static func isNumber(_ field: String) -> Bool {
        let parts = field.drop { $0 == "-" }.split(
            separator: ".",
            omittingEmptySubsequences: false
        )
        return field.utf8.count { $0 == UInt8(ascii: "-") } <= 1 && (1...2).contains(parts.count)
            && parts.allSatisfy { part in
                !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
            }
    }

    /// The answer that the table makes.
    ///
    /// - Parameter next: the cursor of the next page, which a table has no place for.
    /// - Returns: the answer.
    func response(next: String? = nil) -> HTTPResponse {
        var response = HTTPResponse(
            status: 200,
            contentType: "text/csv; charset=utf-8",
            headers: ["Vary": "Accept"],
            body: Array(text.utf8)
        )
        if let next { response.headers["Next-Cursor"] = next }
        return response
    }
}

/// Lets a client that has an answer already hear that it still holds.
enum EntityTag {
    /// A weak tag: the same for answers that say the same.
    static func of(_ bytes: [UInt8]) -> String {
        "W/\"\(Base64URL.encode(Array(SHA256.digest(bytes).prefix(18))))\""
    }

    /// Whether `If-None-Match` has the tag.
    static func isKnown(_ tag: String, to request: HTTPRequest) -> Bool {
        request.headers.all("If-None-Match").flatMap { $0.split(separator: ",") }.contains { item in
            let known = item.filter { $0 != " " && $0 != "\t" }
            return known == "*" || opaque(known) == opaque(tag)
        }
    }

    private static func opaque(_ tag: String) -> Substring {
        tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
    }
}
