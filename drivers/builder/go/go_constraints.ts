// Which Go files are part of a build for this host: their names and build constraints
// (https://pkg.go.dev/cmd/go#hdr-Build_constraints). Without it, a program behind `//go:build ignore` would count.

const SYSTEMS =
  'aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows zos';
const ARCHITECTURES =
  '386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le mips64p32 mips64p32le ppc ppc64 ' +
  'ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm';
const systems = new Set(SYSTEMS.split(' '));
const architectures = new Set(ARCHITECTURES.split(' '));
const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
/** Constraints are the tenant's: a longer one is nothing that people write. */
const CONSTRAINT_MAX = 1000;

/** The package of a file that is part of the build; null for others, tests included. */
export function builtPackageOf(name: string, text: string): string | null {
  if (!name.endsWith('.go') || name.endsWith('_test.go') || /^[._]/.test(name) || !fitsName(name)) return null;
  const code = withoutComments(text);
  const clause = /^[ \t]*package[ \t]+(\w+)/m.exec(code);
  if (clause === null || !fitsConstraint(code.slice(0, clause.index))) return null;
  return clause[1] ?? null;
}

/** Without those in `/* … *\/`, which may quote a package clause. Linear: the text is the tenant's. */
function withoutComments(text: string): string {
  const [first = '', ...rest] = text.split('/*');
  return [first, ...rest.map((part) => (part.includes('*/') ? part.slice(part.indexOf('*/') + 2) : ''))].join(' ');
}

/** `server_linux.go`, `server_windows_amd64.go`. */
function fitsName(name: string): boolean {
  const words = name.slice(0, -'.go'.length).split('_').slice(1);
  const last = words.at(-1) ?? '';
  const system = architectures.has(last) ? (words.at(-2) ?? '') : last;
  return (!architectures.has(last) || last === architecture) && (!systems.has(system) || isTrue(system));
}

function fitsConstraint(head: string): boolean {
  const constraint = /^\/\/go:build[ \t]+(.*)$/m.exec(head)?.[1];
  if (constraint !== undefined) return evaluate(constraint);
  const lines = [...head.matchAll(/^\/\/[ \t]*\+build[ \t]+(.*)$/gm)].map(([, line = '']) => line.trim());
  return lines.every((line) => line.split(/\s+/).some((option) => option.split(',').every(isTrueOption)));
}

function isTrueOption(option: string): boolean {
  return option.startsWith('!') ? !isTrue(option.slice(1)) : isTrue(option);
}

/** Tags of the owner are not known here, and false as for `go build` without them. */
function isTrue(tag: string): boolean {
  return [process.platform, architecture, 'unix', 'gc', 'cgo'].includes(tag) || /^go1\.\d+$/.test(tag);
}

/** A constraint that cannot be read is left to Go. */
function evaluate(constraint: string): boolean {
  const tokens = constraint.slice(0, CONSTRAINT_MAX).match(/\|\||&&|[!()]|[\w.]+/g) ?? [];
  let at = 0;
  const or = (): boolean => {
    let value = and();
    while (tokens[at] === '||') {
      at += 1;
      value = and() || value;
    }
    return value;
  };
  const and = (): boolean => {
    let value = not();
    while (tokens[at] === '&&') {
      at += 1;
      value = not() && value;
    }
    return value;
  };
  const not = (): boolean => {
    const token = tokens[at] ?? '';
    at += 1;
    if (token === '!') return !not();
    if (token !== '(') return isTrue(token);
    const value = or();
    at += 1;
    return value;
  };
  return or();
}
