// The Go release for hosts without Go. One release is enough: from 1.21 on, Go downloads the version that a go.mod
// requires, and verifies it with the checksum database (https://go.dev/doc/toolchain).

export interface GoSource {
  /** In the format of GOPROXY. */
  proxy: string;
  version: string;
  /** By platform and architecture as in Node.js: the `h1:` hash of the module, as in go.sum. */
  hashes: Partial<Record<string, string>>;
}

export const GO_MODULE = 'golang.org/toolchain';
const architectures: Partial<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** To update: use the hashes printed by `go mod download -json`. */
export const goRelease: Omit<GoSource, 'proxy'> = {
  version: '1.26.8',
  hashes: {
    'linux-x64': 'h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=',
    'linux-arm64': 'h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=',
  },
};

/** null where there is none for this host. */
export function goHash({ hashes }: GoSource): string | null {
  return hashes[`${process.platform}-${process.arch}`] ?? null;
}

/** The module version, with which names in its archive start. */
export function goModuleVersion(version: string): string {
  return `v0.0.1-go${version}.${process.platform}-${architectures[process.arch] ?? process.arch}`;
}

/** HTTP(S) proxies of the list. */
export function proxyAddresses({ proxy }: GoSource): string[] {
  return proxy.split(/[,|]/).filter((one) => /^https?:\/\//.test(one));
}
