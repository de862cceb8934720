"""Keys and certificates of one control plane: a CA, one serving certificate for every component, a service-account key."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ("Certificates", "write_certificates")

LIFETIME = timedelta(days=365)
DNS_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files in one folder."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def server_cert(self) -> Path:
        return self.folder / "server.crt"

    @property
    def server_key(self) -> Path:
        return self.folder / "server.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-account.key"

    def exist(self) -> bool:
        """Whether all files are there and the serving certificate is valid for another day."""
        if not all(f.exists() for f in (self.ca, self.server_cert, self.server_key, self.service_account_key)):
            return False
        cert = x509.load_pem_x509_certificate(self.server_cert.read_bytes())
        return cert.not_valid_after_utc > datetime.now(UTC) + timedelta(days=1)


def write_certificates(folder: Path) -> Certificates:
    """Write what is missing; files that are there and valid stay, so that tokens issued before a restart stay valid."""
    certs = Certificates(folder)
    if certs.exist():
        return certs
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    ca_key, server_key = _new_key(), _new_key()
    ca_name = _name(f"grovekeeper-{x509.random_serial_number():x}"[:40])
    ca = _certificate(ca_name, ca_name, ca_key.public_key(), ca_key, is_ca=True)
    server = _certificate(_name("kube-apiserver"), ca_name, server_key.public_key(), ca_key, is_ca=False)
    certs.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    certs.server_cert.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    _write_key(certs.server_key, server_key)
    if not certs.service_account_key.exists():
        _write_key(certs.service_account_key, _new_key())
    return certs


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, signer: ec.EllipticCurvePrivateKey, *, is_ca: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(_key_usage(is_ca=is_ca), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if not is_ca:
        names: list[x509.GeneralName] = [x509.DNSName(n) for n in DNS_NAMES]
        names += [x509.IPAddress(ip_address(a)) for a in ADDRESSES]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    )
