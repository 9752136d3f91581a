#!/usr/bin/env bash
# The life of a token in a shell, from issue to revoke. The output of a command follows it as `#>`.
set -euo pipefail

home=$(mktemp -d)
trap 'kill "$service"; wait "$service" || true; rm -r "$home"' EXIT

# The service, on a free port; its first line ends in its address. In production it runs elsewhere.
export TOKENWRIGHT_ACCOUNTS=ada:correct-horse TOKENWRIGHT_INTROSPECTION=shop:battery-staple
exec 3< <(exec tokenwright serve --data "$home" --port 0)
service=$!
read -r greeting <&3
export TOKENWRIGHT_URL=${greeting##* }
export TOKENWRIGHT_USER=ada TOKENWRIGHT_PASSWORD=correct-horse

# Standard output has only the value; the details of the token go to standard error.
value=$(tokenwright token issue --scope 'GET:*.acme.example/*' --ttl 90d --name ci 2> "$home/about")
id=$(sed -n 's/^id *//p' "$home/about")
grep -c acme.example "$home/about"
#> 9

# What does it allow? A resource server can ask. Exit code 3 means refused.
ask() {
  TOKENWRIGHT_USER=shop TOKENWRIGHT_PASSWORD=battery-staple tokenwright token verify "$@" | sed -n 1p
}
ask GET https://orders.acme.example/orders/7 <<< "$value"
#> allowed  GET orders.acme.example /orders/7
ask POST https://orders.acme.example/orders <<< "$value" || echo "exit code $?"
#> refused  POST orders.acme.example /orders
#> exit code 3

# Fewer rights, then a new value. The id stays the same.
tokenwright token modify "$id" --remove-scope 'GET:billing.acme.example/*' | grep -c acme.example
#> 6
new=$(tokenwright token rotate "$id" 2> "$home/about")
ask GET https://orders.acme.example/orders/7 <<< "$value" || echo 'the old value is refused'
#> refused  GET orders.acme.example /orders/7
#> the old value is refused
ask GET https://orders.acme.example/orders/7 <<< "$new"
#> allowed  GET orders.acme.example /orders/7

tokenwright token revoke "$id" > "$home/about"
ask GET https://orders.acme.example/orders/7 <<< "$new" || echo 'so is the new one'
#> refused  GET orders.acme.example /orders/7
#> so is the new one
