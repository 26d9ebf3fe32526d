public import Ledger
public import Postgres

/// A read model: what one subscription's history says, as rows of tables.
///
/// It is pure. It sees no clock, no database and no other subscription, so projecting live and
/// rebuilding are the same call, and two runs give the same bytes.
public protocol Projection: Sendable {
    /// The name that `subledger rebuild NAME` takes.
    static var name: String { get }
    /// Raised with every change to what `write` makes or to the tables; rows of another version
    /// are out of date, and are rebuilt beside the live ones.
    static var version: Int32 { get }
    /// The tables that it fills, in the order of the buffers that `write` gets.
    static var tables: [Table] { get }

    /// Makes the projection.
    init()

    /// Adds one subscription's rows, whole and never in part.
    ///
    /// A row's key must not repeat within the subscription.
    func write(_ history: History, of subject: Subject, into rows: inout ProjectedRows)
}

/// Whose history is projected, and what configuration says of its app.
public struct Subject: Sendable {
    /// The app's number in `ledger.app`.
    public var appID: Int32
    /// The stream, an `originalTransactionId`.
    public var stream: String
    /// What configuration says of the app.
    public var rules: AppRules

    /// Names a subscription.
    public init(appID: Int32, stream: String, rules: AppRules) {
        self.appID = appID
        self.stream = stream
        self.rules = rules
    }
}

/// A table of a read model.
///
/// Every table has `generation`, which no projection writes, then `app_id integer` and
/// `stream text`, and is partitioned by `generation`.
public struct Table: Hashable, Sendable {
    /// The name within the schema `read_model`.
    public var name: String
    /// The columns after `generation`, in order; `app_id` and `stream` are the first two.
    public var columns: [String]
    /// The `timestamptz` column that tells the rows of one subscription apart; it comes third.
    ///
    /// Nil where a subscription has at most one row.
    public var instantKey: String?
    /// The `integer` column that tells rows of one instant apart; it comes fourth.
    ///
    /// Nil where there is at most one row for each instant.
    public var sequenceKey: String?

    /// Describes a table.
    public init(
        name: String,
        columns: [String],
        instantKey: String? = nil,
        sequenceKey: String? = nil
    ) {
        let keys = ["app_id", "stream"] + [instantKey, sequenceKey].compactMap { $0 }
        precondition(Array(columns.prefix(keys.count)) == keys, "the key comes first")
        precondition(sequenceKey == nil || instantKey != nil, "a sequence is one of an instant")
        self.name = name
        self.columns = columns
        self.instantKey = instantKey
        self.sequenceKey = sequenceKey
    }
}

/// The rows of a projection's tables, encoded for a binary COPY.
public struct ProjectedRows: Sendable {
    /// One entry for each table, in the projection's order.
    public private(set) var tables: [TableRows]

    /// Makes empty buffers for the tables.
    public init(_ tables: [Table]) {
        self.tables = tables.map { TableRows(columnCount: $0.columns.count) }
    }

    /// Adds a row to the table of that index; `fields` writes each column once, in order.
    public mutating func row(_ table: Int, fields: (inout RowBuffer) -> Void) {
        tables[table].row(fields)
    }

    /// How many bytes wait in all tables.
    public var byteCount: Int { tables.reduce(0) { $0 + $1.buffer.bytes.count } }

    /// How many rows wait in all tables.
    public var rowCount: Int { tables.reduce(0) { $0 + $1.buffer.rowCount } }

    /// Empties the buffers and keeps their memory.
    public mutating func removeAll() {
        for index in tables.indices { tables[index].removeAll() }
    }
}

/// Rows of one table, with where each begins.
public struct TableRows: Sendable {
    /// The rows in COPY's binary format.
    public private(set) var buffer = RowBuffer()
    /// The offset of each row in `buffer.bytes`.
    public private(set) var starts: [Int] = []

    private let columnCount: Int

    init(columnCount: Int) { self.columnCount = columnCount }

    /// The bytes of the row of that index: its number of columns, then length and value of each.
    public func range(_ row: Int) -> Range<Int> {
        starts[row]..<(row + 1 < starts.count ? starts[row + 1] : buffer.bytes.count)
    }

    mutating func row(_ fields: (inout RowBuffer) -> Void) {
        starts.append(buffer.bytes.count)
        buffer.beginRow(columns: columnCount)
        fields(&buffer)
    }

    mutating func removeAll() {
        buffer.removeAll()
        starts.removeAll(keepingCapacity: true)
    }
}
