// Origin of Python: uv from a Python package index, and Python builds installed by uv (python-build-standalone).

export interface PythonSource {
  /** Simple repository API (PEP 503, PEP 691), also used by builds. */
  index: string;
  /** Replaces https://github.com/astral-sh/python-build-standalone/releases/download; null: no mirror. */
  mirror: string | null;
  /** File or address of a list of builds, in the format of uv; null = the list built into uv. */
  builds: string | null;
  uv: UvRelease;
}

interface UvRelease {
  version: string;
  /** By platform and architecture as in Node.js. */
  wheels: Partial<Record<string, { file: string; sha256: string }>>;
}

const PUBLIC_INDEX = 'https://pypi.org/simple';

/** To update: use the hashes stated by the index. */
export const uvRelease: UvRelease = {
  version: '0.13.9',
  wheels: {
    'linux-x64': {
      file: 'uv-0.13.9-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl',
      sha256: 'd7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19',
    },
    'linux-arm64': {
      file: 'uv-0.13.9-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl',
      sha256: '5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe',
    },
  },
};

export const PUBLIC_PYTHON: PythonSource = { index: PUBLIC_INDEX, mirror: null, builds: null, uv: uvRelease };

/** null where there is none for this host. */
export function uvWheel({ uv }: PythonSource): { file: string; sha256: string } | null {
  return uv.wheels[`${process.platform}-${process.arch}`] ?? null;
}

/** Index settings for builds; an address with credentials is withheld, since a build could print it. */
export function indexSettings({ index }: PythonSource): Record<string, string> {
  if (index === PUBLIC_INDEX || !URL.canParse(index) || new URL(index).username !== '') return {};
  // Poetry reads its own through a plugin that is installed with it.
  return { PIP_INDEX_URL: index, POETRY_PYPI_MIRROR_URL: index, PDM_PYPI_URL: index };
}
