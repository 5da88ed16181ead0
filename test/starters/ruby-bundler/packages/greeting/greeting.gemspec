Gem::Specification.new do |spec|
  spec.name = 'greeting'
  spec.version = '1.0'
  spec.summary = 'A greeting'
  spec.authors = ['example.com']
  spec.files = ['greeting.rb']
  spec.require_paths = ['.']
end
