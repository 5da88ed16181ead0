require 'mysql2'
require 'uri'
$stdout.sync = true
address = URI(ENV['DATABASE_URL'])
parts = { host: address.host, port: address.port, username: address.user, password: address.password,
          database: address.path[1..] }
[{}, { ssl_mode: :verify_identity, sslca: ENV['DATABASE_CA_FILE'], sslverify: true }].each do |options|
  row = Mysql2::Client.new(**parts, **options).query("show session status like 'Ssl_cipher'").first
  puts row['Value'].empty? ? 'plain' : 'encrypted'
end
