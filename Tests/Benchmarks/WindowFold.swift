public import Postgres

/// The timelines of a whole log, folded by the database itself with window functions.
///
/// A second oracle beside the simulator's evaluator: it reads the log's facts as the projections
/// do, but shares no code with the fold. Source: `window_fold.sql`, lifecycle reference 3.2.
public struct WindowFold: Sendable {
    /// How many intervals the read model has by state, neighbours of equal content being one.
    public private(set) var intervals: [String: Int] = [:]
    /// How many intervals only one side has, or both have with different content.
    public private(set) var differing = 0
    /// The first of these, a line each.
    public private(set) var differences: [String] = []

    /// How many differences are spelled out.
    static let differencesMax = 10

    /// Folds the log in the database and compares with the live rows of the entitlement read model.
    ///
    /// The session must be in a transaction, at whose end the temporary tables go.
    ///
    /// - Throws: `PostgresError`.
    public init(comparingIn connection: Connection) throws(PostgresError) {
        try Self.fold(in: connection)
        try connection.execute(Self.folded)
        let states = try connection.query("select state, count(*) from folded group by state")
        for row in 0..<states.count {
            intervals[states.text(row, 0) ?? ""] = Int(states.int(row, 1) ?? 0)
        }
        differing = Int(try connection.query("select count(*) \(Self.unlike)").int(0, 0) ?? -1)
        let rows = try connection.query(
            """
            select stream || ', ' || valid_from || ': folded ' || concat_ws('/', f.*::text)
                || ', by windows ' || concat_ws('/', w.*::text)
            \(Self.unlike) order by app_id, stream, valid_from limit \(Self.differencesMax)
            """
        )
        differences = (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    /// Folds the log into temporary tables, which go at the end of the transaction.
    static func fold(in connection: Connection) throws(PostgresError) {
        try connection.execute(String(decoding: PackageResources.window_fold_sql, as: UTF8.self))
    }

    /// The product's intervals, split only where the database's are.
    private static let folded = """
        create temporary table folded on commit drop as
        select app_id, stream, valid_from, state, cause, product_id
        from (
            select i.*, lag((state, cause, product_id)) over (
                partition by app_id, stream order by valid_from)
                is not distinct from (state, cause, product_id) as is_same
            from read_model.entitlement_interval as i
            join read_model.current as c using (generation)
            where c.projection = 'entitlement'
        ) as intervals
        where not is_same
        """

    private static let unlike = """
        from folded as f full join window_fold as w using (app_id, stream, valid_from)
        where (f.state, f.cause, f.product_id) is distinct from (w.state, w.cause, w.product_id)
        """
}
