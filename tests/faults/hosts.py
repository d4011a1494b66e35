"""Two hosts for a test: network namespaces joined by a cable; where those are not to be had, processes of one machine.

A namespace of a user who is root in it needs no rights outside. Each host is named by 0 or 1.
"""

import os
import socket
import subprocess

HOLD = ("sh", "-c", "echo ready; exec sleep infinity")  # a namespace lives as long as a process in it


class Namespaces:
    """Two network namespaces and a virtual Ethernet cable."""

    addresses = ("10.99.0.1", "10.99.0.2")
    interfaces = ("veth0", "veth1")
    notice = "Timed out waiting"  # a host that is cut off does not close its connections

    def __enter__(self):
        self._holders = []
        try:
            self._hold("unshare", "--user", "--map-root-user", "--net")
            self._hold(*self._entered(0, "--user"), "unshare", "--net")
            self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self._holders:
            holder.kill()
            holder.communicate()

    def command(self, host, *command):
        """What runs `command` on a host."""
        return [*self._entered(host, "--user", "--net"), *command]

    def ports(self, count):
        """Free on host 0."""
        return range(29_500, 29_500 + count)

    def cut_off(self, host):
        """Pulls the cable: packets are lost, and no connection is closed."""
        self._ip(host, "link", "set", self.interfaces[host], "down")

    def _hold(self, *command):
        holder = subprocess.Popen([*command, *HOLD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._holders.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise OSError(holder.communicate()[1])

    def _entered(self, host, *namespaces):
        return ["nsenter", "--target", str(self._holders[host].pid), *namespaces, "--preserve-credentials"]

    def _join(self):
        first, second = self.interfaces
        peer = ("type", "veth", "peer", "name", second, "netns", str(self._holders[1].pid))
        self._ip(0, "link", "add", first, *peer)
        for host, (address, interface) in enumerate(zip(self.addresses, self.interfaces, strict=True)):
            self._ip(host, "address", "add", f"{address}/24", "dev", interface)
            for each in ("lo", interface):
                self._ip(host, "link", "set", each, "up")

    def _ip(self, host, *arguments):
        subprocess.run(self.command(host, "ip", *arguments), check=True, capture_output=True)


class OneMachine:
    """Two processes of one machine, of which one is killed: the other's connections are reset."""

    addresses = ("127.0.0.1", "127.0.0.1")
    interfaces = ("lo", "lo")
    notice = "closed by peer|reset by peer"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def command(self, _, *command):
        return list(command)

    def ports(self, count):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        numbers = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        return numbers

    def cut_off(self, _):
        pass


def best():
    """The kind of hosts that this machine lets us have."""
    try:
        with Namespaces():
            return Namespaces
    except (OSError, subprocess.CalledProcessError):
        return OneMachine


def environment(hosts, host):
    """For the processes of a host: gloo is told which way the other lies."""
    return os.environ | {"GLOO_SOCKET_IFNAME": hosts.interfaces[host], "OMP_NUM_THREADS": "1"}
