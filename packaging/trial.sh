#!/bin/sh
# Run as root on a bare Debian: checks that the distributed files can be installed, work, and are removed without a
# trace.
#   trial.sh VERSION MACHINE ARCHITECTURE, in the folder of the files
set -eux

version=$1
machine=$2
architecture=$3
scenario=share/equipoise/scenarios/demo-short.toml

# The package.
dpkg --install "equipoise_${version}_$architecture.deb"
equipoise --version
test "$(stat -c %a /etc/equipoise/receive.conf)" = 600
equipoise check "/usr/$scenario"
equipoise sim "/usr/$scenario" --quiet --json package.json
test -e /usr/share/man/man1/equipoise-send.1.gz
systemd-analyze verify --man=no /usr/lib/systemd/system/equipoise-receive.service

# The archive: the same command, from a folder.
tar --extract --file "equipoise-$version-$machine.tar.gz"
"equipoise-$version-$machine/bin/equipoise" sim "equipoise-$version-$machine/$scenario" --quiet --json archive.json
cmp package.json archive.json

# The library: examples built by both compilers, by gcc with sanitizers, and a file sent from the command to C.
tar --extract --file "libequipoise-$version-$machine.tar.gz" --strip-components=1 --directory /usr/local
ldconfig
export PKG_CONFIG_PATH=/usr/local/lib/pkgconfig
flags=$(pkg-config --cflags --libs equipoise)
for name in controller receive flow_pair; do
    # Unquoted on purpose: each word is a flag.
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
