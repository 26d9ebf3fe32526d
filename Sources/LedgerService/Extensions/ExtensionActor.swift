internal import EventLog

/// Who acts on an extension: what is known of them without their word, and what they say.
public struct ExtensionActor: Hashable, Sendable {
    /// By which way somebody came.
    public enum Channel: String, Hashable, Sendable {
        /// The command line.
        case cli
        /// The HTTP interface.
        case http
        /// The service itself, where nobody asked.
        case service
    }

    /// Who it is, as known without their word: a token's name, or account, host and database role.
    public var authenticated: String
    /// Who they say they are.
    public var claimed: String?
    /// For whom they act.
    public var onBehalfOf: String?
    /// What they may do.
    public var role: String?
    /// How they were recognised: `bearer_token`, `os_account` or `service`.
    public var method: String
    /// By which way they came.
    public var channel: Channel
    /// The address that a request came from.
    public var clientAddress: String?
    /// The token's short name, or the session.
    public var session: String?
    /// The account of the operating system.
    public var osUser: String?
    /// The machine.
    public var host: String?
    /// Who the session of the database logs in as.
    public var databaseRole: String?

    /// The holder of a token.
    public init(tokenName: String, id: String, role: String, address: String) {
        authenticated = "token:\(tokenName)"
        method = "bearer_token"
        channel = .http
        self.role = role
        session = id
        clientAddress = address
    }

    /// An account at the command line.
    public init(osUser: String, host: String, databaseRole: String, claimed: String) {
        authenticated = "os:\(osUser)@\(host)/\(databaseRole)"
        method = "os_account"
        channel = .cli
        role = "operator"
        self.osUser = osUser
        self.host = host
        self.databaseRole = databaseRole
        self.claimed = claimed
    }

    /// The service itself, which settles what others asked for.
    static let service = ExtensionActor()

    private init() {
        authenticated = "service:subledger"
        method = "service"
        channel = .service
        role = "service"
    }

    /// Writes who acts into a note.
    func sign(_ note: inout ExtensionNote) {
        note[text: "operator_authenticated"] = authenticated
        note[text: "operator_claimed"] = claimed
        note[text: "on_behalf_of"] = onBehalfOf
        note[text: "requester_role"] = role
        note[text: "authn_method"] = method
        note[text: "channel"] = channel.rawValue
        note[text: "client_ip"] = clientAddress
        note[text: "session_id"] = session
        note[text: "os_user"] = osUser
        note[text: "host"] = host
        note[text: "database_role"] = databaseRole
    }

    /// Whether this is who made a request.
    ///
    /// What is known decides; who says the same name as the requester is taken for the same too.
    func isAuthor(of request: ExtensionNote) -> Bool {
        if request[text: "operator_authenticated"]?.lowercased() == authenticated.lowercased() {
            return true
        }
        guard let claimed, let other = request[text: "operator_claimed"] else { return false }
        return claimed.lowercased() == other.lowercased()
    }
}
