internal import Crypto
public import Ledger
public import Postgres

/// A bearer token of the HTTP interface, as it is kept: without the token itself.
public struct APIToken: Hashable, Sendable {
    /// What a token lets its holder do.
    public enum Role: String, Hashable, Sendable, CaseIterable {
        /// Asks for read models.
        case reader
        /// Asks for read models, and acts: what acts comes with the extensions.
        case `operator`
        /// Asks for everything, evidence included.
        case auditor
    }

    /// A short public name, part of the token.
    public var id: String
    /// What it may do.
    public var role: Role
    /// What it is for, in words.
    public var name: String
    /// Who made it.
    public var createdBy: String
    /// When it was made.
    public var createdAt: Timestamp
    /// When it was revoked; nil while it is good.
    public var revokedAt: Timestamp?
    /// SHA-256 of the token.
    var digest: [UInt8]

    /// Whether a presented token's digest is this one's, in a time that tells nothing.
    func matches(_ presented: [UInt8]) -> Bool {
        guard presented.count == digest.count else { return false }
        var difference: UInt8 = 0
        for place in digest.indices { difference |= digest[place] ^ presented[place] }
        return difference == 0
    }
}

/// The bearer tokens of an installation.
public struct APITokens {
    private let connection: Connection

    /// Makes a store over a session that may insert tokens; one that only reads needs the
    /// auditor's or the appender's rights.
    public init(_ connection: Connection) { self.connection = connection }

    /// Makes a token of 256 random bits and keeps its digest.
    ///
    /// - Returns: the token, which is shown this once, and what is kept of it.
    /// - Throws: `PostgresError`.
    public func create(
        _ role: APIToken.Role,
        name: String,
        by creator: String
    ) throws(PostgresError) -> (token: String, kept: APIToken) {
        var generator = SystemRandomNumberGenerator()
        let id = hexadecimal(
            (0..<6).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        )
        let secret = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let token = "subledger_\(id)_\(Base64URL.encode(secret))"
        let digest = Self.digest(of: token)
        let rows = try connection.query(
            """
            insert into ledger.api_token (token_id, digest, role, name, created_by)
            values ($1, $2, $3, $4, $5) returning created_at
            """,
            [.text(id), .bytes(digest), .text(role.rawValue), .text(name), .text(creator)]
        )
        let kept = APIToken(
            id: id,
            role: role,
            name: name,
            createdBy: creator,
            createdAt: rows.timestamp(0, 0) ?? .earliest,
            digest: digest
        )
        return (token, kept)
    }

    /// Every token that was ever made, the oldest first.
    ///
    /// - Throws: `PostgresError`.
    public func all() throws(PostgresError) -> [APIToken] {
        let rows = try connection.query(
            """
            select t.token_id, t.role, t.name, t.created_by, t.created_at, r.revoked_at, t.digest
            from ledger.api_token t left join ledger.api_token_revocation r using (token_id)
            order by t.created_at, t.token_id
            """
        )
        return (0..<rows.count).compactMap { row in
            guard let role = rows.text(row, 1).flatMap(APIToken.Role.init) else { return nil }
            return APIToken(
                id: rows.text(row, 0) ?? "",
                role: role,
                name: rows.text(row, 2) ?? "",
                createdBy: rows.text(row, 3) ?? "",
                createdAt: rows.timestamp(row, 4) ?? .earliest,
                revokedAt: rows.timestamp(row, 5),
                digest: rows.bytes(row, 6) ?? []
            )
        }
    }

    /// What became of a wish to revoke a token.
    public enum Revocation: Hashable, Sendable {
        /// From now on it opens nothing; running services know within seconds.
        case revoked
        /// It was revoked before.
        case revokedBefore
        /// There is no such token.
        case unknown
    }

    /// Revokes a token for ever.
    ///
    /// - Throws: `PostgresError`.
    public func revoke(_ id: String, by who: String) throws(PostgresError) -> Revocation {
        let known = try connection.query(
            "select from ledger.api_token where token_id = $1",
            [.text(id)]
        )
        guard known.count == 1 else { return .unknown }
        let rows = try connection.query(
            """
            insert into ledger.api_token_revocation (token_id, revoked_by) values ($1, $2)
            on conflict do nothing returning token_id
            """,
            [.text(id), .text(who)]
        )
        return rows.count == 1 ? .revoked : .revokedBefore
    }

    /// What is kept of a token.
    static func digest(of token: String) -> [UInt8] { SHA256.digest(Array(token.utf8)) }
}
