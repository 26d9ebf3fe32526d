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
        text += CommaSeparated.line(fields) + "\r\n"
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
