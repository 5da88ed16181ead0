// Ruby: Bundler installs the gems into vendor/bundle, and Puma, the server of Rails or Rack starts.
import { isCalled, requireLanguage } from '../host_language';
import type { BuildHost, DetectLanguage, LanguagePlan, Step } from '../language_plan';
import { LISTEN } from '../listen';
import type { SourceFiles } from '../source_files';
import { CALLS } from '../unbuilt_source';

const SCRIPTS = ['app.rb', 'main.rb', 'server.rb', 'web.rb'];

export const detectRuby: DetectLanguage = async (files, host) => {
  const gemfile = await files.read('Gemfile');
  if (gemfile === null) return null;
  const lock = (await files.read('Gemfile.lock')) ?? '';
  const gems = new Set(
    [...`${gemfile}\n${lock}`.matchAll(/^ {4}([\w.-]+) \(|^\s*gem\s*\(?\s*['"]([\w.-]+)/gm)].map(nameOf),
  );
  const isRails = (await files.has('bin/rails')) || (await files.has('config/application.rb'));
  const start = await findStart(files, gems, isRails);
  if (start === null && !isCalled(host, CALLS.Ruby)) return null;
  requireLanguage(host, {
    name: 'Ruby',
    file: 'Gemfile',
    programs: { ruby: 'ruby-full', bundler: 'ruby-bundler', cc: 'build-essential' },
    isInterpreted: true,
  });
  const plan: LanguagePlan = {
    kind: 'ruby',
    summary: [`Ruby ${host.facts.programs.ruby!.version}`, 'Bundler'],
    tools: [],
    steps: [installStep(await files.isDirectory('vendor/cache'), lock !== ''), ...(isRails ? [assetsStep()] : [])],
    site: [],
    prune: null,
    processes: { ...(start !== null && { web: start }), ...workerOf(gems, isRails) },
    missing: start === null ? missingStart() : null,
    env: {
      BUNDLE_PATH: 'vendor/bundle',
      BUNDLE_WITHOUT: 'development:test',
      ...(lock !== '' && { BUNDLE_DEPLOYMENT: '1' }),
      RACK_ENV: 'production',
      ...(isRails && { RAILS_ENV: 'production', RAILS_LOG_TO_STDOUT: '1', RAILS_SERVE_STATIC_FILES: '1' }),
    },
    programs: [],
    reasons: isRails ? adviceFor(host) : [],
  };
  return plan;
};

function nameOf([, locked, stated]: RegExpMatchArray): string {
  return locked ?? stated ?? '';
}

async function findStart(files: SourceFiles, gems: Set<string>, isRails: boolean): Promise<string | null> {
  const hasPuma = gems.has('puma');
  if (hasPuma && (await files.has('config/puma.rb'))) return 'bundle exec puma -C config/puma.rb';
  const isRack = await files.has('config.ru');
  if (hasPuma && (isRack || isRails)) return `bundle exec puma -b tcp://${LISTEN}:$PORT`;
  if (isRails) return `bundle exec rails server -b ${LISTEN} -p $PORT`;
  if (isRack) return `bundle exec rackup -o ${LISTEN} -p $PORT`;
  if (!gems.has('sinatra')) return null;
  for (const script of SCRIPTS) if (await files.has(script)) return `bundle exec ruby ${script} -o ${LISTEN} -p $PORT`;
  return null;
}

/**
 * Gems with parts in C take minutes to build, so those of the last build are there before it. A build that is killed
 * leaves no half of a copy, which Bundler would take for installed.
 */
function installStep(isVendored: boolean, isLocked: boolean): Step {
  return {
    name: 'bundle install',
    command: [
      'kept="$HOME/vendor-bundle"',
      'if [ -d "$kept" ] && [ ! -e vendor/bundle ]; then mkdir -p vendor && cp -a "$kept" vendor/bundle; fi',
      ...(isLocked ? [] : ["echo 'There is no Gemfile.lock, so each build may install other versions.'"]),
      `bundle install${isVendored ? ' --local' : ''} || exit 1`,
      'bundle clean --force > /dev/null || exit 1',
      'if [ -d vendor/bundle ]; then',
      '  rm -rf "$kept.new" && cp -a vendor/bundle "$kept.new" && rm -rf "$kept" && mv "$kept.new" "$kept"',
      'fi',
    ].join('\n'),
  };
}

/** Rails wants a secret to load, which assets do not depend on. */
function assetsStep(): Step {
  return {
    name: 'Assets',
    command: [
      'export SECRET_KEY_BASE="${SECRET_KEY_BASE:-build}" SECRET_KEY_BASE_DUMMY=1',
      "if ! bundle exec rake -P | grep -q '^rake assets:precompile$'; then echo 'There are none.'; exit 0; fi",
      'bundle exec rake assets:precompile',
    ].join('\n'),
  };
}

function workerOf(gems: Set<string>, isRails: boolean): Record<string, string> {
  if (gems.has('sidekiq')) return { worker: 'bundle exec sidekiq' };
  if (isRails && gems.has('solid_queue')) return { worker: 'bundle exec rake solid_queue:start' };
  return isRails && gems.has('good_job') ? { worker: 'bundle exec good_job start' } : {};
}

function adviceFor({ commands }: BuildHost): string[] {
  if (commands.web !== undefined) return [];
  return [
    'Rails: set SECRET_KEY_BASE or RAILS_MASTER_KEY in the variables. `bundle exec rails db:migrate` runs before ' +
      'each new version where it is the release command (run.release_command in the settings).',
  ];
}

function missingStart(): string {
  return 'The source is a program in Ruby without a config.ru. Add a Procfile with a line for `web`.';
}
