#!/usr/bin/env bash
# Makes the stores of this folder anew, with the JDK's keytool and OpenSSL. All passwords: store-secret, and
# key-secret where a key has one of its own. Valid for a hundred years, so that no test ends with a date.
set -euo pipefail
cd "$(dirname "$0")"
rm -f ./*.jks ./*.p12 ./*.pem
days=36500
ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha256)
openssl req -x509 "${ec[@]}" -nodes -days $days -subj "/CN=stores test CA" -keyout ca.key -out ca.pem
issue() { # NAME SUBJECT-ALTERNATIVE-NAME
  openssl req "${ec[@]}" -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days $days \
    -extfile <(echo "subjectAltName=$2") -out "$1.crt"
  cat "$1.key" "$1.crt" > "$1.pem"
}
issue server "IP:127.0.0.1,DNS:localhost"
issue client "DNS:client.test"
store=(-storepass store-secret -noprompt)

keytool -importcert -alias ca -file ca.pem -keystore trust.jks -storetype JKS "${store[@]}"
keytool -importcert -alias ca -file ca.pem -keystore trust.p12 -storetype PKCS12 "${store[@]}"
keytool -J-Dkeystore.pkcs12.legacy -importcert -alias ca -file ca.pem -keystore trust-legacy.p12 \
  -storetype PKCS12 "${store[@]}"
openssl pkcs12 -export -nokeys -in ca.pem -passout pass:store-secret -out trust-openssl.p12
openssl pkcs12 -export -in client.pem -certfile ca.pem -name client -passout pass:store-secret -out client.p12
openssl pkcs12 -export -legacy -in client.pem -certfile ca.pem -name client -passout pass:store-secret \
  -out client-legacy.p12
into() { # FILE TYPE MORE…
  local file=$1 type=$2
  shift 2
  keytool -importkeystore -srckeystore client.p12 -srcstoretype PKCS12 -srcstorepass store-secret \
    -srcalias client -destkeystore "$file" -deststoretype "$type" -deststorepass store-secret -noprompt "$@"
}
into client-keytool.p12 PKCS12
into client.jks JKS
into client-own-key-password.jks JKS -destkeypass key-secret
into client.jceks JCEKS
openssl pkcs8 -topk8 -in client.key -passout pass:key-secret -out locked.key
cat locked.key client.crt > client-locked.pem
rm -f ./*.key ./*.csr ./*.crt ./*.srl
