require 'sequel'
$stdout.sync = true
address = ENV['DATABASE_URL'].sub('mysql:', 'mysql2:')
[{}, { sslca: ENV['DATABASE_CA_FILE'], sslverify: true }].each do |options|
  row = Sequel.connect(address, options).fetch("show session status like 'Ssl_cipher'").first
  puts row[:Value].empty? ? 'plain' : 'encrypted'
end
