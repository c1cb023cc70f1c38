require 'logger'
require 'action_controller/railtie'

class Shop < Rails::Application
  config.load_defaults 6.1
  config.eager_load = true
  config.secret_key_base = 'none'
  config.logger = Logger.new(nil)
  config.hosts.clear
  routes.append { get 'orders' => 'orders#index' }
end

class Price
  def self.of(order)
    (1..order).sum { |n| Math.sqrt(n) }
  end
end

class OrdersController < ActionController::Base
  def index
    render inline: '<%= totals(200).join(" ") %>'
  end

  helper_method def totals(count)
    (1..count).map { |order| Price.of(order) }
  end
end

ENV['RAILS_ENV'] = 'production'
Shop.initialize!
run Shop
