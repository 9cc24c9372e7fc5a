//! The password for a server whose connection others may read.

use mysql_common::crypto::der::parse_uint;
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;

/// Bytes that the padding takes.
const PADDING: usize = 42;
/// 1,024 bits; shorter keys are none.
const SHORTEST: usize = 128;

/// Encrypts a password with a key in PEM form; `None` where the key is none that
/// can hold it.
pub(super) fn encrypt(password: &[u8], pem: &[u8]) -> Option<Vec<u8>> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    // A sequence of the algorithm and the key, which is a sequence of two numbers.
    let (info, _) = element(0x30, &der)?;
    let (_, rest) = element(0x30, info)?;
    let (bits, _) = element(0x03, rest)?;
    let (0, key) = bits.split_first()? else { return None };
    let (key, _) = element(0x30, key)?;
    let (modulus, rest) = element(0x02, key)?;
    let (exponent, _) = element(0x02, rest)?;
    let modulus = without_zeros(modulus);
    let exponent = without_zeros(exponent);
    let whole_bytes = modulus.first().is_some_and(|first| first & 0x80 != 0);
    if !whole_bytes || modulus.len() < SHORTEST.max(password.len() + PADDING) {
        return None;
    }
    if exponent.is_empty() || exponent.len() > 8 {
        return None;
    }
    // The library's reader wants what was looked at just now, and nothing else.
    let (modulus, _) = parse_uint(&number(modulus)?);
    let (exponent, _) = parse_uint(&number(exponent)?);
    let key = PublicKey::new(modulus, exponent);
    Some(key.encrypt_block(password, Pkcs1OaepPadding::new(GetRandom)))
}

/// The content of the element at the front of some bytes, and what follows.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    if *found != tag {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(*first), rest),
        0x81 => {
            let (length, rest) = rest.split_first()?;
            (usize::from(*length), rest)
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or(&[])
}

fn number(bytes: &[u8]) -> Option<Vec<u8>> {
    let [high, low] = u16::try_from(bytes.len()).ok()?.to_be_bytes();
    Some([&[0x02, 0x82, high, low], bytes].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A key of 2,048 bits that was made for this test.
    const PEM: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArvr+9/pI3TItZkYV3fJ7
GCsw3Pl64oftGhtfwGa5k1bkZqGYVU5AnEpBCHuPOulWoTAhpKM5eH3hARAwkxDj
J3nypwyOPaV57Z+6gmIkbFkzEeQg+HjmkP83DlRRseR6ys6cq77B1KiN8Y5M5FcG
gdXXPMCZiS2AsEteyhpPKeG8LaroeDkrYzHwiw6qVC5x+tX/frKp6dKIw2D2Va7q
IbwFfM7OlQm27m96DDuLUNob4Ec3adM4WN//jHTOkuqS5aGyK0n6am32koeamsUV
YjOKhKV9ODSpIg4bm07g0xfrV40aT3MZlDXCF6RUwj+lTtVxthcyoQdAL+uC3Nkt
OwIDAQAB
-----END PUBLIC KEY-----
";

    #[test]
    fn a_password_is_encrypted_each_time_anew() {
        let once = encrypt(b"secret\0", PEM.as_bytes()).unwrap();
        let again = encrypt(b"secret\0", PEM.as_bytes()).unwrap();
        assert_eq!((once.len(), again.len()), (256, 256));
        assert_ne!(once, again);
        assert!(encrypt(&[7; 214], PEM.as_bytes()).is_some());
        assert!(encrypt(&[7; 215], PEM.as_bytes()).is_none());
        assert!(encrypt(b"secret\0", b"no key").is_none());
    }

    proptest! {
        #[test]
        fn a_damaged_key_is_survived(
            damage in proptest::collection::vec((0usize..1000, any::<u8>()), 1..4),
        ) {
            let mut der = SubjectPublicKeyInfoDer::from_pem_slice(PEM.as_bytes()).unwrap().to_vec();
            for (at, byte) in damage {
                // Lengths and tags stand in front.
                let at = at % 40;
                der[at] = byte;
            }
            let _ = encrypt(b"secret\0", pem(&der).as_bytes());
        }
    }

    fn pem(der: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::from("-----BEGIN PUBLIC KEY-----\n");
        for three in der.chunks(3) {
            let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - three.len()));
            for digit in 0..4 {
                let place = usize::try_from(bits >> (18 - 6 * digit) & 63).unwrap();
                text.push(if digit <= three.len() { char::from(DIGITS[place]) } else { '=' });
            }
        }
        text + "\n-----END PUBLIC KEY-----\n"
    }
}
