#!/bin/sh
# Checks that the distributed files can be installed, work, and can be removed without a trace. Must be run as root on a
# minimal Debian system, in the folder with the files:
#   trial.sh VERSION MACHINE ARCHITECTURE
set -eux

version=$1
machine=$2
architecture=$3
scenario=share/equipoise/scenarios/demo-short.toml

# Test the Debian package.
dpkg --install "equipoise_${version}_$architecture.deb"
equipoise --version
test "$(stat -c %a /etc/equipoise/receive.conf)" = 600
equipoise check "/usr/$scenario"
equipoise sim "/usr/$scenario" --quiet --json package.json
test -e /usr/share/man/man1/equipoise-send.1.gz
systemd-analyze verify --man=no /usr/lib/systemd/system/equipoise-receive.service

# Test the archive: the command must compute the same results as the command from the package.
tar --extract --file "equipoise-$version-$machine.tar.gz"
"equipoise-$version-$machine/bin/equipoise" sim "equipoise-$version-$machine/$scenario" --quiet --json archive.json
cmp package.json archive.json

# Test the library: build the C examples with gcc (with sanitizers) and with clang, and send a file from the command to
# an example.
tar --extract --file "libequipoise-$version-$machine.tar.gz" --strip-components=1 --directory /usr/local
ldconfig
export PKG_CONFIG_PATH=/usr/local/lib/pkgconfig
flags=$(pkg-config --cflags --libs equipoise)
for name in controller receive flow_pair; do
    # $flags is not quoted, because each of its words is a separate flag.
    # shellcheck disable=SC2086
    gcc -g -fsanitize=address,undefined -o "$name-gcc" "$name.c" $flags -pthread
    # shellcheck disable=SC2086
    clang -O2 -o "$name-clang" "$name.c" $flags -pthread
done
./controller-gcc >/dev/null
./controller-clang >/dev/null
equipoise keygen key
for compiler in gcc clang; do
    EQUIPOISE_KEY=$(cat key) "./receive-$compiler" 127.0.0.1:5104 got &
    equipoise send 127.0.0.1 --port 5104 --key key --time 60 --quiet --file "equipoise-$version-$machine.tar.gz"
    wait $!
    cmp got "equipoise-$version-$machine.tar.gz"
done

dpkg --purge equipoise
test ! -e /etc/equipoise
test ! -e /usr/bin/equipoise
echo "trial: all went well"
