/// A request's method, as it was sent.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The method's name; methods are case-sensitive.
    public var rawValue: String

    /// Names a method.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// GET.
    public static let get = HTTPMethod(rawValue: "GET")
    /// HEAD, answered by the route of GET without its body.
    public static let head = HTTPMethod(rawValue: "HEAD")
    /// POST.
    public static let post = HTTPMethod(rawValue: "POST")
    /// PUT.
    public static let put = HTTPMethod(rawValue: "PUT")
    /// PATCH.
    public static let patch = HTTPMethod(rawValue: "PATCH")
    /// DELETE.
    public static let delete = HTTPMethod(rawValue: "DELETE")
    /// OPTIONS.
    public static let options = HTTPMethod(rawValue: "OPTIONS")

    /// The methods that a route may have; any other is answered 501.
    public static let known: [HTTPMethod] = [.get, .head, .post, .put, .patch, .delete, .options]

    /// The method's name.
    public var description: String { rawValue }
}
