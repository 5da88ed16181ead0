/** @user any */
// Rust, Java, PHP and Ruby, which the host brings: what is built and started, and what is said where a program lacks.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { HostFacts } from '../../../core/catalog/host_facts';
import { buildError, commands, detect, facts, setUpPlans, settings } from '../../support/deployments/plans';

setUpPlans();

const at = (file: string, version = 'installed') => ({ version, path: file });
const host: HostFacts = {
  ...facts,
  programs: {
    ...facts.programs,
    ...{ cargo: at('/usr/bin/cargo', '1.85.0'), cc: at('/usr/bin/cc'), javac: at('/usr/bin/javac') },
    ...{ maven: at('/usr/bin/mvn'), gradle: at('/usr/bin/gradle'), php: at('/usr/bin/php', '8.2.1') },
    ...{ php_fpm: at('/usr/sbin/php-fpm8.2'), composer: at('/usr/bin/composer'), nginx: at('/usr/sbin/nginx') },
    ...{ ruby: at('/usr/bin/ruby', '3.1.2'), bundler: at('/usr/bin/bundle') },
  },
  javas: [
    { major: 17, home: '/usr/lib/jvm/java-17', isDefault: true },
    { major: 21, home: '/usr/lib/jvm/java-21', isDefault: false },
  ],
};
const lacking = (...names: (keyof HostFacts['programs'])[]): HostFacts => ({
  ...host,
  programs: { ...host.programs, ...Object.fromEntries(names.map((name) => [name, undefined])) },
});
const plan = (files: Record<string, string | object>, of = host) => detect(files, {}, of);
const web = async (files: Record<string, string | object>): Promise<string | undefined> =>
  (await plan(files)).processes.web;

describe('Rust', () => {
  const cargo = (text: string, files: Record<string, string> = { 'src/main.rs': '' }) => ({
    'Cargo.toml': text,
    ...files,
  });
  const shop = '[package]\nname = "shop"\n';

  it('starts the program of the package, the one of default-run, or the one with its name', async () => {
    expect(await web(cargo(shop))).toBe('target/release/shop');
    const two = { 'src/bin/api.rs': '', 'src/bin/tool/main.rs': '' };
    expect(await web(cargo(`${shop}default-run = "api"\n`, two))).toBe('target/release/api');
    expect(await web(cargo(shop, { 'src/main.rs': '', ...two }))).toBe('target/release/shop');
    expect(await web(cargo(`${shop}autobins = false\n[[bin]]\nname = "front"\n`, two))).toBe('target/release/front');
    const unclear = await plan(cargo(shop, two));
    expect(unclear).toMatchObject({ processes: {}, missing: expect.stringMatching(/programs api, tool.*Procfile/) });
    expect(commands(unclear)).toHaveLength(1);
  });

  it('finds the programs of the members of a workspace', async () => {
    const files = {
      'Cargo.toml': '[workspace]\nmembers = ["crates/*", "web"]\nexclude = ["crates/old"]\n',
      ...{ 'crates/core/Cargo.toml': '[package]\nname = "core"\n', 'crates/core/src/lib.rs': '' },
      ...{ 'crates/old/Cargo.toml': '[package]\nname = "old"\n', 'crates/old/src/main.rs': '' },
      ...{ 'web/Cargo.toml': '[package]\nname = "web"\n[dependencies]\nrocket = "0.5"\n', 'web/src/main.rs': '' },
    };
    const found = await plan(files);
    expect(found.processes.web).toMatch(/^ROCKET_ADDRESS=\S+ ROCKET_PORT=\$PORT target\/release\/web$/);
    expect(found.steps[0]!.command).toContain('cargo build --release -p web --bin web ||');
    expect((await plan({ ...files, 'Cargo.lock': '' })).steps[0]!.command).toContain('--locked -p web');
  });

  it('says which toolchain, program or line is the matter', async () => {
    expect(
      await buildError(plan(cargo(shop, { 'src/main.rs': '', 'rust-toolchain.toml': 'channel = "nightly"' }))),
    ).toMatch(/rust-toolchain\.toml asks for Rust nightly, and this host has 1\.85\.0/);
    expect(await buildError(plan(cargo(shop, { 'src/main.rs': '', 'rust-toolchain': '1.90.1\n' })))).toMatch(
      /Rust 1\.90\.1/,
    );
    for (const channel of ['stable', '1.70', '1.85.0'])
      expect(await web(cargo(shop, { 'src/main.rs': '', 'rust-toolchain': `${channel}\n` }))).toBeDefined();
    expect(await buildError(plan(cargo('[package\n')))).toMatch(/^Cargo\.toml is not valid TOML: see line 1\.$/);
    expect(await buildError(plan(cargo(shop), lacking('cargo', 'cc')))).toMatch(
      /program in Rust \(Cargo\.toml\).*`apt-get install cargo build-essential`/,
    );
  });

  it('puts no name of a manifest into a command that is not one', async () => {
    const odd = cargo('[package]\nname = "a; rm -rf ~"\n[[bin]]\nname = "$(id)"\n');
    expect(await buildError(plan(odd))).toMatch(/no start command was found/);
  });
});

describe('Java', () => {
  const sources = { 'src/main/java/Shop.java': '' };

  it('builds by the wrapper, else by the program of the host, and starts the jar', async () => {
    const boot = { ...sources, 'pom.xml': '<parent><artifactId>spring-boot-starter-parent</artifactId></parent>' };
    const found = await plan(boot);
    expect(commands(found)[0]).toMatch(/^\/usr\/bin\/mvn -B .*clean package$/);
    expect(found.processes.web).toBe(
      'java -XX:MaxRAMPercentage=70 -Dserver.port=$PORT $JAVA_OPTS -jar "$(cat .platform/jar)"',
    );
    expect(found.env).toEqual({ JAVA_HOME: '/usr/lib/jvm/java-17' });
    expect(commands(await plan({ ...boot, mvnw: '' }))[0]).toMatch(/^sh mvnw -B/);
    expect(commands(await plan({ ...sources, 'build.gradle.kts': '', gradlew: '' }))[0]).toMatch(
      /^sh gradlew .*assemble$/,
    );
    expect(await web({ ...sources, 'build.gradle': 'id "io.quarkus"' })).toMatch(/-Dquarkus\.http\.port=\$PORT/);
  });

  it.each([
    ['pom.xml', 'target/quarkus-app/quarkus-run.jar */target/quarkus-app/quarkus-run.jar target/*.[jw]ar'],
    ['build.gradle', 'build/quarkus-app/quarkus-run.jar */build/quarkus-app/quarkus-run.jar build/libs/*.[jw]ar'],
  ])('of %s finds what Quarkus starts, too', async (file, places) => {
    expect(commands(await plan({ ...sources, [file]: 'quarkus' })).at(-1)).toContain(`set -- '${places} `);
  });

  it.each([
    ["task stage(dependsOn: ['clean', 'installDist'])", 'stage'],
    ['tasks.register("stage") { dependsOn("installDist") }', 'stage'],
    ['// the stage of the build', 'clean assemble'],
  ])('by Gradle, %s builds with %s', async (text, task) => {
    expect(commands(await plan({ ...sources, 'build.gradle': text }))[0]).toMatch(new RegExp(` ${task}$`));
  });

  const versions: [Record<string, string>, number][] = [
    [{ 'pom.xml': '<java.version>21</java.version>' }, 21],
    [{ 'pom.xml': '<maven.compiler.release>18</maven.compiler.release>' }, 21],
    [{ 'pom.xml': '<maven.compiler.source>1.8</maven.compiler.source>' }, 17],
    [{ 'pom.xml': '', 'system.properties': 'java.runtime.version=21' }, 21],
    [{ 'pom.xml': '', '.sdkmanrc': 'java=21.0.2-tem' }, 21],
    [{ 'build.gradle': 'languageVersion = JavaLanguageVersion.of(21)' }, 21],
    [{ 'build.gradle': "sourceCompatibility = '11'" }, 17],
    [{ 'build.gradle.kts': 'kotlin { jvmToolchain(21) }' }, 21],
    [{ 'build.gradle': 'sourceCompatibility = JavaVersion.VERSION_21' }, 21],
  ];
  it.each(versions)('of %j takes the oldest JDK that is new enough: %i', async (files, major) => {
    expect((await plan({ ...sources, ...files })).env.JAVA_HOME).toBe(`/usr/lib/jvm/java-${major}`);
  });

  it('says which JDK or program the host lacks', async () => {
    const newer = { ...sources, 'pom.xml': '<java.version>25</java.version>' };
    expect(await buildError(plan(newer))).toMatch(
      /pom\.xml asks for Java 25, and this host has Java 17, 21.*openjdk-25-jdk/,
    );
    const pom = { ...sources, 'pom.xml': '' };
    expect(await buildError(plan(pom, lacking('javac', 'maven')))).toMatch(
      /`apt-get install default-jdk-headless maven`/,
    );
    expect(await buildError(plan({ 'pom.xml': '' }))).toMatch(/pom\.xml \(Java\).*src\/main/);
  });

  it('runs what a Procfile starts, without a search for it', async () => {
    const found = await plan({ 'pom.xml': '', Procfile: 'web: java -jar target/shop.jar\n' });
    expect(found).toMatchObject({ kind: 'procfile', processes: { web: 'java -jar target/shop.jar' } });
    expect(found.steps.map(({ name }) => name)).toEqual(['Maven', 'Java']);
  });
});

describe('PHP', () => {
  it.each([
    [{ 'index.php': '' }, '.'],
    [{ 'public/index.php': '', 'composer.json': '{}' }, 'public'],
    [{ 'web/index.php': '', 'composer.json': '{}' }, 'web'],
    [{ 'index.html': '', 'index.php': '' }, '.'],
  ])('%j is served from %s', async (files, folder) => {
    expect(await web(files as Record<string, string>)).toBe(`sh .platform/php-server.sh ${folder}`);
  });

  it('has the processes of Laravel, and its packages are there before its assets are built', async () => {
    const found = await plan({
      ...{ 'composer.json': '{}', 'composer.lock': '{}', artisan: '', 'public/index.php': '' },
      'package.json': { scripts: { build: 'vite build' } },
    });
    expect(Object.keys(found.processes)).toEqual(['web', 'worker', 'scheduler']);
    expect(found.steps.slice(0, 2).map(({ name }) => name)).toEqual(['composer install', 'PHP-FPM and nginx']);
    expect(commands(found)).toContainEqual(expect.stringMatching(/npm run build|build/));
    expect(found.reasons).toContainEqual(expect.stringMatching(/APP_KEY/));
  });

  it('needs no Composer where the packages are there, and no server where a Procfile starts one', async () => {
    const files = { 'composer.json': '{}', 'vendor/autoload.php': '', 'public/index.php': '' };
    expect((await plan(files, lacking('composer'))).steps.map(({ name }) => name)).toEqual(['PHP-FPM and nginx']);
    const own = { ...files, Procfile: 'web: php -S 127.0.0.1:$PORT\n' };
    expect((await plan(own, lacking('composer', 'nginx', 'php_fpm'))).steps).toEqual([]);
  });

  it('starts what Procfiles for Heroku name, with and without vendor/bin', async () => {
    const Procfile = 'web: vendor/bin/heroku-php-apache2 web/\n';
    const { steps } = await plan({ 'composer.json': '{}', 'web/index.php': '', Procfile });
    const folder = mkdtempSync(path.join(tmpdir(), 'platform-heroku-'));
    try {
      // Where Composer has put a link to its package.
      mkdirSync(path.join(folder, 'vendor/bin'), { recursive: true });
      symlinkSync('../package', path.join(folder, 'vendor/bin/heroku-php-apache2'));
      execFileSync('sh', ['-c', steps.at(-1)!.command], { cwd: folder });
      for (const place of ['vendor/bin', '.platform/bin'])
        expect(readFileSync(path.join(folder, place, 'heroku-php-apache2'), 'utf8')).toContain('/php-server.sh"\n');
      expect(readdirSync(path.join(folder, 'vendor'))).toEqual(['bin']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('names what the host lacks', async () => {
    expect(
      await buildError(plan({ 'public/index.php': '', 'composer.json': '{}' }, lacking('php', 'nginx', 'composer'))),
    ).toMatch(/program in PHP \(composer\.json\).*`apt-get install php-cli nginx-light composer`/);
  });
});

describe('Ruby', () => {
  const rails = { Gemfile: 'gem \'rails\'\ngem "puma"', 'bin/rails': '', 'config.ru': '' };

  it.each([
    [{ ...rails, 'config/puma.rb': '' }, 'bundle exec puma -C config/puma.rb'],
    [rails, 'bundle exec puma -b tcp://${SVC_LISTEN_ADDRESS:-127.0.0.1}:$PORT'],
    [{ Gemfile: 'gem "rack"', 'config.ru': '' }, 'bundle exec rackup -o ${SVC_LISTEN_ADDRESS:-127.0.0.1} -p $PORT'],
    [
      { Gemfile: "gem 'sinatra'", 'app.rb': '' },
      'bundle exec ruby app.rb -o ${SVC_LISTEN_ADDRESS:-127.0.0.1} -p $PORT',
    ],
  ])('%j starts its server', async (files, command) => {
    expect(await web(files as Record<string, string>)).toBe(command);
  });

  it('has the worker of its queue, the surroundings of production, and gems that are brought along', async () => {
    const found = await plan({
      ...rails,
      'Gemfile.lock': 'GEM\n  specs:\n    sidekiq (7.0)\n',
      'vendor/cache/a.gem': '',
    });
    expect(found.processes).toMatchObject({ worker: 'bundle exec sidekiq' });
    expect(found.env).toMatchObject({ RAILS_ENV: 'production', BUNDLE_DEPLOYMENT: '1', BUNDLE_PATH: 'vendor/bundle' });
    expect(found.steps[0]!.command).toContain('bundle install --local');
    expect(found.reasons).toEqual([expect.stringMatching(/SECRET_KEY_BASE.*db:migrate/)]);
  });

  it('keeps all gems of a build for the next one, or those of the build before', async () => {
    const { steps } = await plan(rails);
    const folder = mkdtempSync(path.join(tmpdir(), 'platform-gems-'));
    const [source, programs, home] = ['source', 'programs', 'home'].map((name) => path.join(folder, name));
    try {
      for (const one of [source, programs, home]) mkdirSync(one!);
      writeFileSync(path.join(programs!, 'bundle'), '#!/bin/sh\nmkdir -p vendor/bundle/new\n', { mode: 0o755 });
      // What a build that was killed in the copy has left.
      for (const one of ['vendor-bundle/old', 'vendor-bundle.new/half'])
        mkdirSync(path.join(home!, one), { recursive: true });
      const env = { PATH: `${programs}:${process.env.PATH}`, HOME: home };
      execFileSync('sh', ['-c', steps[0]!.command], { cwd: source, env });
      expect(readdirSync(path.join(source!, 'vendor/bundle')).sort()).toEqual(['new', 'old']);
      expect(readdirSync(home!)).toEqual(['vendor-bundle']);
      expect(readdirSync(path.join(home!, 'vendor-bundle')).sort()).toEqual(['new', 'old']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is no program where nothing of it starts', async () => {
    expect(await plan({ Gemfile: '', 'package.json': { scripts: { start: 'node x' } } })).toMatchObject({
      kind: 'node',
    });
    expect(await buildError(plan({ Gemfile: '' }))).toMatch(/Gemfile \(Ruby\), and no start command was found/);
    expect(await buildError(plan(rails, lacking('ruby', 'bundler')))).toMatch(
      /`apt-get install ruby-full ruby-bundler`/,
    );
  });
});

it('leaves a source with a Dockerfile to it', async () => {
  const bubblewrap = at('/usr/bin/bwrap');
  const images: HostFacts = { ...host, programs: { ...host.programs, bubblewrap }, oci_builders: ['buildah'] };
  const files = { Dockerfile: 'FROM scratch\nCMD ["/a"]\n', Gemfile: '', 'config.ru': '' };
  expect(await plan(files, images)).toMatchObject({ kind: 'dockerfile' });
  expect(await plan(files, host)).toMatchObject({ kind: 'ruby' });
  expect(await detect({ ...files, Procfile: 'web: bundle exec rackup\n' }, settings, images)).toMatchObject({
    kind: 'procfile',
  });
});
