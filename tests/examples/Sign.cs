// One signed request with C#, without packages; it runs on .NET (8 or later) and on Mono.
//
//   export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
//   dotnet run -- GET  http://127.0.0.1:8080/v1/accounts     (this file as Program.cs of `dotnet new console`)
//   dotnet run -- POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
// or
//   mcs -r:System.Net.Http.dll Sign.cs && mono Sign.exe GET http://127.0.0.1:8080/v1/accounts
//
// After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
// payment may name its customer by the national identity number: PSU_IDENTITY.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;

static class Program
{
    static int Main(string[] arguments)
    {
        string certificateFile = Variable("CERTIFICATE"), keyFile = Variable("KEY");
        if (arguments.Length < 2 || certificateFile == "" || keyFile == "")
        {
            Console.Error.WriteLine("Usage: CERTIFICATE=certificate.pem KEY=key.pem dotnet run -- METHOD URL [BODY]");
            return 2;
        }
        var method = arguments[0];
        var address = new Uri(arguments[1]);
        var body = Encoding.UTF8.GetBytes(arguments.Length > 2 ? arguments[2] : "");
        var given = new Dictionary<string, string>
        {
            ["psu-id"] = Variable("PSU_ID"),
            ["tpp-session-id"] = Variable("SESSION_ID"),
            ["x-psu-identity"] = Variable("PSU_IDENTITY"),
        };

        using (var certificate = new X509Certificate2(Pem.Read(certificateFile)))
        using (var key = Pem.PrivateKey(keyFile))
        using (var request = new HttpRequestMessage(new HttpMethod(method), address))
        using (var client = new HttpClient())
        {
            request.Headers.ExpectContinue = false;
            if (body.Length > 0)
            {
                request.Content = new ByteArrayContent(body);
                request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
            }
            foreach (var header in Signer.Headers(method, address, body, given, certificate, key))
                request.Headers.TryAddWithoutValidation(header.Key, header.Value);
            using (var answer = client.SendAsync(request).GetAwaiter().GetResult())
            {
                Console.WriteLine(answer.Content.ReadAsStringAsync().GetAwaiter().GetResult());
                Console.WriteLine("HTTP " + (int)answer.StatusCode);
            }
        }
        return 0;
    }

    static string Variable(string name) => Environment.GetEnvironmentVariable(name) ?? "";
}

static class Signer
{
    // Each of these that a request carries must be signed.
    static readonly string[] Signed = { "date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri" };

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
        foreach (var header in given.Where(header => header.Value != "")) headers[header.Key] = header.Value;
        using (var sha256 = SHA256.Create())
            if (body.Length > 0) // over exactly the bytes that are sent
                headers["digest"] = "SHA-256=" + Convert.ToBase64String(sha256.ComputeHash(body));

        // One line for each signed header; (request-target) ties the signature to this address.
        var names = Signed.Where(headers.ContainsKey).ToList();
        var lines = names.Select(name => name + ": " + headers[name]).ToList();
        names.Insert(0, "(request-target)");
        lines.Insert(0, "(request-target): " + method.ToLowerInvariant() + " " + address.PathAndQuery);
        var text = Encoding.UTF8.GetBytes(string.Join("\n", lines));
        var signature = key.SignData(text, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);

        var serial = certificate.SerialNumber.TrimStart('0'); // upper-case hex
        var value = $"keyId=\"SN={serial},CA={Issuer(certificate)}\",algorithm=\"rsa-sha256\","
            + $"headers=\"{string.Join(" ", names)}\",signature=\"{Convert.ToBase64String(signature)}\"";
        if (value.Any(letter => letter < ' ' || letter > '~')) // as a MIME word
            value = "=?utf-8?B?" + Convert.ToBase64String(Encoding.UTF8.GetBytes(value)) + "?=";
        headers["signature"] = value;
        return headers;
    }

    static readonly Dictionary<string, string> Types = new Dictionary<string, string>
    {
        ["2.5.4.3"] = "CN", ["2.5.4.6"] = "C", ["2.5.4.7"] = "L", ["2.5.4.8"] = "ST", ["2.5.4.9"] = "STREET",
        ["2.5.4.10"] = "O", ["2.5.4.11"] = "OU", ["0.9.2342.19200300.100.1.25"] = "DC",
    };

    // The issuer as RFC 2253 writes it: the last part first, special characters with a backslash.
    static string Issuer(X509Certificate2 certificate)
    {
        var parts = new List<string>();
        foreach (var set in Der.Of(certificate.IssuerName.RawData).Parts())
        {
            var pairs = set.Parts().Select(pair => pair.Parts()).ToList();
            parts.Insert(0, string.Join("+", pairs.Select(pair => Type(pair[0].Oid()) + "=" + Escaped(pair[1].Text()))));
        }
        return string.Join(",", parts);
    }

    static string Type(string oid) => Types.ContainsKey(oid) ? Types[oid] : oid;

    static string Escaped(string value)
    {
        var text = new StringBuilder();
        for (var at = 0; at < value.Length; at++)
        {
            var outer = (at == 0 && " #".IndexOf(value[at]) >= 0) || (at == value.Length - 1 && value[at] == ' ');
            if (outer || ",+\"\\<>;=".IndexOf(value[at]) >= 0) text.Append('\\');
            text.Append(value[at]);
        }
        return text.ToString();
    }
}

static class Pem
{
    // The bytes between the lines that begin with dashes.
    public static byte[] Read(string file) =>
        Convert.FromBase64String(string.Concat(File.ReadAllLines(file).Skip(1).TakeWhile(line => !line.StartsWith("-"))));

    // PKCS #8. On .NET alone: RSA.Create() and its ImportFromPem.
    public static RSA PrivateKey(string file)
    {
        var key = Der.Of(Read(file)).Parts();
        var numbers = Der.Of(key[2].Content).Parts();
        var length = numbers[1].Number(0).Length;
        var rsa = RSA.Create();
        rsa.ImportParameters(new RSAParameters
        {
            Modulus = numbers[1].Number(length), Exponent = numbers[2].Number(0), D = numbers[3].Number(length),
            P = numbers[4].Number(length / 2), Q = numbers[5].Number(length / 2), DP = numbers[6].Number(length / 2),
            DQ = numbers[7].Number(length / 2), InverseQ = numbers[8].Number(length / 2),
        });
        return rsa;
    }
}

// One value in DER: a tag, a length, and the content.
class Der
{
    public byte Tag;
    public byte[] Content;

    public static Der Of(byte[] bytes)
    {
        var at = 0;
        return Next(bytes, ref at);
    }

    public List<Der> Parts()
    {
        var parts = new List<Der>();
        for (var at = 0; at < Content.Length;) parts.Add(Next(Content, ref at));
        return parts;
    }

    static Der Next(byte[] bytes, ref int at)
    {
        var tag = bytes[at++];
        int length = bytes[at++];
        if (length > 127) // then the number of bytes that hold the length
        {
            var digits = length - 128;
            for (length = 0; digits > 0; digits--) length = length * 256 + bytes[at++];
        }
        var content = bytes.Skip(at).Take(length).ToArray();
        at += length;
        return new Der { Tag = tag, Content = content };
    }

    // A positive whole number without leading zeros, or filled with them to `length` bytes.
    public byte[] Number(int length)
    {
        var digits = Content.SkipWhile(digit => digit == 0).ToArray();
        return new byte[Math.Max(0, length - digits.Length)].Concat(digits).ToArray();
    }

    public string Text() =>
        (Tag == 0x1E ? Encoding.BigEndianUnicode : Tag == 0x14 ? Encoding.GetEncoding("iso-8859-1") : Encoding.UTF8).GetString(Content);

    public string Oid()
    {
        var arcs = new List<long>();
        long arc = 0;
        foreach (var part in Content)
        {
            arc = arc * 128 + part % 128;
            if (part > 127) continue;
            arcs.Add(arc);
            arc = 0;
        }
        var first = Math.Min(2, arcs[0] / 40);
        return $"{first}.{arcs[0] - first * 40}." + string.Join(".", arcs.Skip(1));
    }
}
