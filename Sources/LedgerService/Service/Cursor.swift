internal import Crypto
internal import HTTP
internal import Ledger

/// Where the next page of a list begins: after this subscription, as of the same instant.
///
/// The instant is part of it, since all pages of a list must be of one moment, and so is which list
/// it is: in another one it would pass rows over.
struct Cursor: Hashable, Sendable {
    /// Which list it is: `Parameters.list`.
    var list: String
    /// The instant that the list is about.
    var at: Timestamp
    /// The last subscription of the page before.
    var last: SubscriptionKey

    init(of list: String, at: Timestamp, last: SubscriptionKey) {
        self.list = list
        self.at = at
        self.last = last
    }

    /// Reads a cursor; nil for what no list has handed out.
    init?(_ text: String) {
        guard let bytes = Base64URL.decode(text),
            let plain = String(validating: bytes, as: UTF8.self)
        else { return nil }
        let words = plain.split(separator: " ", maxSplits: 4, omittingEmptySubsequences: false)
        guard words.count == 5, words[0] == "2", let milliseconds = Int64(words[2]),
            let appID = Int32(words[3]), !words[4].isEmpty, words[4].utf8.count <= 200,
            !words[4].utf8.contains(0)
        else { return nil }
        list = String(words[1])
        at = Timestamp(milliseconds: milliseconds)
        last = SubscriptionKey(appID: appID, stream: String(words[4]))
        guard at.isStorable else { return nil }
    }

    /// The cursor as lists hand it out; what it consists of is nobody else's business.
    var text: String {
        Base64URL.encode(Array("2 \(list) \(at.milliseconds) \(last.appID) \(last.stream)".utf8))
    }
}

/// Which page of a list is asked for.
struct PageWish: Hashable, Sendable {
    /// How many items a page may have.
    static let limitMax: Int64 = 1000
    /// How many it has where nothing is said.
    static let limitDefault: Int64 = 100

    /// The instant that the list is about.
    var at: Timestamp
    /// Whether the instant was given, by itself or in a cursor; otherwise it is now.
    var isAtGiven: Bool
    /// The last subscription of the page before; nil for the first page.
    var last: SubscriptionKey?
    /// How many items the page may have.
    var limit: Int
    /// Which list it is.
    private let list: String

    /// Reads `at`, `cursor` and `limit`.
    init(_ parameters: Parameters, now: Timestamp) throws(ServiceProblem) {
        let at = try parameters.instant("at")
        limit = Int(try parameters.integer("limit", in: 1...Self.limitMax) ?? Self.limitDefault)
        isAtGiven = at != nil
        self.at = at ?? now
        list = parameters.list
        guard let text = parameters.text("cursor") else { return }
        guard let cursor = Cursor(text), cursor.list == list else {
            throw .foreignCursor
        }
        guard at == nil || at == cursor.at else {
            throw .parameter("at", "the instant of the page before, or none")
        }
        isAtGiven = true
        self.at = cursor.at
        last = cursor.last
    }

    /// The items of the page, out of one more than it may have, and the cursor of the next page;
    /// nil at the end.
    func page<Item>(
        of items: [Item],
        _ key: (Item) -> SubscriptionKey
    ) -> (items: ArraySlice<Item>, next: String?) {
        let page = items.prefix(limit)
        guard items.count > limit, let end = page.last else { return (page, nil) }
        return (page, Cursor(of: list, at: at, last: key(end)).text)
    }
}
