require 'socket'
require 'greeting'

$stdout.sync = true
server = TCPServer.new(ENV.fetch('SVC_LISTEN_ADDRESS', '127.0.0.1'), ENV.fetch('PORT').to_i)
loop do
  Thread.start(server.accept) do |client|
    nil until ['', nil].include?(client.gets&.strip)
    client.write("HTTP/1.1 200 OK\r\nContent-Length: #{GREETING.bytesize}\r\nConnection: close\r\n\r\n#{GREETING}")
    client.close
  end
end
