// One signed request with .NET (8 or later), without packages: the Program.cs of `dotnet new console`.
//
//   export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
//   dotnet run -- GET  http://127.0.0.1:8080/v1/accounts
//   dotnet run -- POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
//
// After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
// payment may name its customer by the national identity number: PSU_IDENTITY.

using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;

if (args.Length < 2 || Variable("CERTIFICATE") is not { } certificateFile || Variable("KEY") is not { } keyFile)
{
    Console.Error.WriteLine("Usage: CERTIFICATE=certificate.pem KEY=key.pem dotnet run -- METHOD URL [BODY]");
    return 2;
}
var method = args[0];
var address = new Uri(args[1]);
var body = Encoding.UTF8.GetBytes(args.Length > 2 ? args[2] : "");
var given = new Dictionary<string, string>();
foreach (var (from, to) in new[] { ("PSU_ID", "psu-id"), ("SESSION_ID", "tpp-session-id"), ("PSU_IDENTITY", "x-psu-identity") })
    if (Variable(from) is { } value) given[to] = value;

using var certificate = X509Certificate2.CreateFromPem(File.ReadAllText(certificateFile));
using var key = RSA.Create();
key.ImportFromPem(File.ReadAllText(keyFile));

using var request = new HttpRequestMessage(new HttpMethod(method), address);
if (body.Length > 0)
{
    request.Content = new ByteArrayContent(body);
    request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
}
foreach (var (name, value) in Signer.Headers(method, address, body, given, certificate, key))
    request.Headers.TryAddWithoutValidation(name, value);
using var client = new HttpClient();
using var answer = await client.SendAsync(request);
Console.WriteLine(await answer.Content.ReadAsStringAsync());
Console.WriteLine($"HTTP {(int)answer.StatusCode}");
return 0;

static string? Variable(string name) =>
    Environment.GetEnvironmentVariable(name) is { Length: > 0 } value ? value : null;

static class Signer
{
    // Each of these that a request carries must be signed.
    static readonly string[] Signed = ["date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri"];

    public static Dictionary<string, string> Headers(
        string method, Uri address, byte[] body, Dictionary<string, string> given, X509Certificate2 certificate, RSA key)
    {
        var headers = new Dictionary<string, string>
        {
            ["date"] = DateTimeOffset.UtcNow.ToString("R"),
            ["x-request-id"] = Guid.NewGuid().ToString(),
            ["tpp-session-id"] = Guid.NewGuid().ToString(),
            ["tpp-redirect-uri"] = "https://tpp.example/callback",
            ["psu-ip-address"] = "192.0.2.1",
            ["x-accept-fix"] = "amount-as-string",
            ["tpp-signature-certificate"] = Convert.ToBase64String(certificate.RawData),
        };
        foreach (var (name, value) in given) headers[name] = value;
        if (body.Length > 0) // over exactly the bytes that are sent
            headers["digest"] = "SHA-256=" + Convert.ToBase64String(SHA256.HashData(body));

        // One line for each signed header; (request-target) ties the signature to this address.
        var names = new List<string> { "(request-target)" };
        names.AddRange(Signed.Where(headers.ContainsKey));
        var target = $"{method.ToLowerInvariant()} {address.PathAndQuery}";
        var text = string.Join("\n", names.Select(name => $"{name}: {(name == "(request-target)" ? target : headers[name])}"));
        var signature = key.SignData(Encoding.UTF8.GetBytes(text), HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);

        var serial = certificate.SerialNumber.TrimStart('0'); // upper-case hex
        var header = $"keyId=\"SN={serial},CA={Issuer(certificate)}\",algorithm=\"rsa-sha256\","
            + $"headers=\"{string.Join(' ', names)}\",signature=\"{Convert.ToBase64String(signature)}\"";
        if (header.Any(letter => letter is < ' ' or > '~')) // as a MIME word
            header = $"=?utf-8?B?{Convert.ToBase64String(Encoding.UTF8.GetBytes(header))}?=";
        headers["signature"] = header;
        return headers;
    }

    // The issuer as RFC 2253 writes it: the last part first, special characters with a backslash.
    static string Issuer(X509Certificate2 certificate) => string.Join(",",
        certificate.IssuerName.EnumerateRelativeDistinguishedNames(reversed: true).Select(part =>
            $"{Type(part.GetSingleElementType())}={Escaped(part.GetSingleElementValue() ?? "")}"));

    static string Type(Oid oid) => oid.Value switch
    {
        "2.5.4.3" => "CN", "2.5.4.6" => "C", "2.5.4.7" => "L", "2.5.4.8" => "ST", "2.5.4.9" => "STREET",
        "2.5.4.10" => "O", "2.5.4.11" => "OU", "0.9.2342.19200300.100.1.25" => "DC", var other => other ?? "",
    };

    static string Escaped(string value)
    {
        var text = new StringBuilder();
        for (var at = 0; at < value.Length; at++)
        {
            var outer = (at == 0 && value[at] is ' ' or '#') || (at == value.Length - 1 && value[at] == ' ');
            if (outer || ",+\"\\<>;=".Contains(value[at])) text.Append('\\');
            text.Append(value[at]);
        }
        return text.ToString();
    }
}
